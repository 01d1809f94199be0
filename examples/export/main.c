/* Calls spread() of plates/heat.py, exported for a plate of doubles, an int and a float. */
#include <stdio.h>

#include "spread.h"

enum { ROWS = 48, COLUMNS = 64 };

static double plate[ROWS * COLUMNS];

static int fails(int code)
{
    fprintf(stderr, "%s: %s\n", spread_error_name(code), spread_last_message());
    return 1;
}

int main(void)
{
    for (int k = 0; k < COLUMNS; k++) plate[k] = 100.0; /* the upper edge is hot */
    parakeet_float64_2d given = parakeet_float64_2d_of(plate, ROWS, COLUMNS), result;
    double change;

    int code = spread_1(&given, 200, 0.2, &result, &change);
    if (code != PARAKEET_OK) return fails(code);
    printf("code for %s\n", spread_target());
    for (int row = 0; row < ROWS; row += 8) {
        const double *line = (const double *)((const char *)result.data + row * result.strides[0]);
        printf("%2d: %.6f\n", row, line[COLUMNS / 2]);
    }
    printf("last change %.6f\n", change);
    spread_free(result.owner);

    code = spread_1(&given, 200, 0.5, &result, &change);
    if (code != PARAKEET_ValueError) return 1;
    printf("refused: %s\n", spread_last_message());
    return 0;
}
