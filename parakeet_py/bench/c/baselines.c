/* The practical limit of the machine: some benchmark programs as a C programmer would write them for speed.
 *
 * Compiled with gcc -O3 -march=native -ffast-math -fopenmp, where exp and log of a vector loop become calls into libmvec.
 * Every function does exactly the job of the NumPy function of its name: results go into fresh arrays made by the
 * caller (which pays for them inside the measured time, as NumPy does), updates happen in place. `threads` is the number
 * of OpenMP threads; all arrays are C-contiguous.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double normal_cdf(double x) {
    double k = 1.0 / (1.0 + 0.2316419 * fabs(x));
    double poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    double tail = 0.3989422804014327 * exp(-0.5 * x * x) * poly;
    return x > 0.0 ? 1.0 - tail : tail;
}

void black_scholes(const double *restrict price, const double *restrict strike, const double *restrict years,
                   double rate, double volatility, double *restrict call, double *restrict put, int64_t n,
                   int threads) {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double spread = volatility * sqrt(years[i]);
        double d1 = (log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / spread;
        double discounted = strike[i] * exp(-rate * years[i]);
        double n1 = normal_cdf(d1), n2 = normal_cdf(d1 - spread);
        call[i] = price[i] * n1 - discounted * n2;
        put[i] = discounted * (1.0 - n2) - price[i] * (1.0 - n1);
    }
}

double sum_of_squared_differences(const double *restrict a, const double *restrict b, int64_t n, int threads) {
    double total = 0.0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
        double difference = a[i] - b[i];
        total += difference * difference;
    }
    return total;
}

static void relax(const double *restrict from, double *restrict to, int64_t rows, int64_t columns) {
#pragma omp for schedule(static)
    for (int64_t i = 1; i < rows - 1; i++) {
        const double *restrict row = from + i * columns;
        double *restrict out = to + i * columns;
#pragma omp simd
        for (int64_t j = 1; j < columns - 1; j++)
            out[j] = 0.25 * (row[j - columns] + row[j + columns] + row[j - 1] + row[j + 1]);
    }
}

void relaxation_2d(double *restrict old, double *restrict new, int64_t rows, int64_t columns, int64_t rounds,
                   int threads) {
#pragma omp parallel num_threads(threads)
    for (int64_t r = 0; r < rounds; r++) {
        relax(old, new, rows, columns);
        relax(new, old, rows, columns);
    }
}

/* Centres are transposed to [dimension][centre], so that the inner loop runs over centres in vectors. */
void kmeans_assign(const double *restrict points, const double *restrict centres, int64_t *restrict labels, int64_t n,
                   int64_t d, int64_t k, int threads) {
    double *transposed = malloc(sizeof(double) * (size_t)(d * k));
    for (int64_t j = 0; j < k; j++)
        for (int64_t c = 0; c < d; c++) transposed[c * k + j] = centres[j * d + c];
#pragma omp parallel num_threads(threads)
    {
        double *restrict distance = malloc(sizeof(double) * (size_t)k);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            memset(distance, 0, sizeof(double) * (size_t)k);
            for (int64_t c = 0; c < d; c++) {
                double x = points[i * d + c];
                const double *restrict row = transposed + c * k;
#pragma omp simd
                for (int64_t j = 0; j < k; j++) {
                    double difference = x - row[j];
                    distance[j] += difference * difference;
                }
            }
            int64_t label = 0;
            for (int64_t j = 1; j < k; j++)
                if (distance[j] < distance[label]) label = j;
            labels[i] = label;
        }
        free(distance);
    }
    free(transposed);
}

void mandelbrot(double left, double right, double bottom, double top, int64_t width, int64_t height, int64_t limit,
                int64_t *restrict image, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
    for (int64_t row = 0; row < height; row++) {
        double y = bottom + (top - bottom) * (double)row / (double)height;
        for (int64_t column = 0; column < width; column++) {
            double x = left + (right - left) * (double)column / (double)width;
            double re = 0.0, im = 0.0;
            int64_t steps = 0;
            while (steps < limit && re * re + im * im <= 4.0) {
                double next = re * re - im * im + x;
                im = 2.0 * re * im + y;
                re = next;
                steps++;
            }
            image[row * width + column] = steps;
        }
    }
}

/* Coordinates are copied to three arrays first: unit stride in the inner loop. */
void nbody(const double *restrict position, const double *restrict velocity, const double *restrict mass, double dt,
           double softening, double *restrict new_position, double *restrict new_velocity, int64_t n, int threads) {
    double *coordinates = malloc(sizeof(double) * (size_t)(3 * n));
    double *restrict x = coordinates, *restrict y = coordinates + n, *restrict z = coordinates + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        x[i] = position[3 * i];
        y[i] = position[3 * i + 1];
        z[i] = position[3 * i + 2];
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double ax = 0.0, ay = 0.0, az = 0.0;
#pragma omp simd reduction(+ : ax, ay, az)
        for (int64_t j = 0; j < n; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            double square = dx * dx + dy * dy + dz * dz + softening * softening;
            double pull = mass[j] / (square * sqrt(square));
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        double acceleration[3] = {ax, ay, az};
        for (int c = 0; c < 3; c++) {
            new_velocity[3 * i + c] = velocity[3 * i + c] + dt * acceleration[c];
            new_position[3 * i + c] = position[3 * i + c] + dt * new_velocity[3 * i + c];
        }
    }
    free(coordinates);
}

void matmul_loops(const double *restrict a, const double *restrict b, double *restrict result, int64_t rows,
                  int64_t inner, int64_t columns, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        double *restrict out = result + i * columns;
        memset(out, 0, sizeof(double) * (size_t)columns);
        for (int64_t k = 0; k < inner; k++) {
            double scale = a[i * inner + k];
            const double *restrict row = b + k * columns;
#pragma omp simd
            for (int64_t j = 0; j < columns; j++) out[j] += scale * row[j];
        }
    }
}
