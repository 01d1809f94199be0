/* What all signatures of an exported library share: arguments are checked, the code of a target is chosen and called,
   failures become codes and messages, results are handed over.

   Arguments and results are words of 8 bytes. An array that enters is [object, data, extents, strides], one that leaves
   [object, base, block, data, extents, strides]; a scalar takes one word, a complex128 two. `object` and `base` are
   numbers of array arguments (from 1 on) here: what compiled code does with them is to pass them on. Before this text
   stand PK(name), which puts the library's name before a name, and the library's tables. */

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { MAX_RANK = 64, WORDS = 6, KEPT_MESSAGE = 1024 };

/* How an array must lie in memory; `order` lists the axes by falling strides where they are not in that order. `unit` is 1
   for axes of one element, 2 for those with a stride of 0, which are anywhere. */
struct array_kind {
    int8_t size, alignment, layout, inner, writeable, ordered;
    const int8_t *unit;
    const int8_t *order;
};

struct argument {
    const char *name;
    int rank; /* less than 0: a scalar of so many words */
    int slot;
    const struct array_kind *kind;
    const int64_t *baked; /* the words of a value that the library holds; NULL: the caller gives it */
};

struct result {
    int rank; /* less than 0: a scalar of so many words */
    int slot;
};

struct failure {
    int code;
    const char *message;
    const char *formats;
};

struct context {
    int64_t status, order, words[WORDS];
    struct block *blocks;
    void *state;
    int32_t max_threads, lock;
    int64_t levels;
    void *floor;
    int32_t flags, failures;
    void *thread;
    int64_t due;
};

struct block {
    int64_t count, bytes;
    struct block *previous, *next;
    struct context *owner;
    int64_t capacity;
    void *base;
    int64_t mapped;
};

typedef int32_t entry(struct context *, int64_t *, int64_t *);

struct signature {
    int arguments, results, pairs, failures, recursive, disjoint;
    const struct argument *argument;
    const struct result *result;
    const int (*pair)[2];
    const struct failure *failure;
    entry *const *code; /* of each target */
};

struct target {
    int level;
    const char *name;
    void (*start)(void);
    void (*after_fork)(void);
    void *(*stack_floor)(void);
};

struct named_code {
    int code;
    const char *name, *text;
};

_Static_assert(sizeof(struct context) == 128 && sizeof(struct block) == 64, "the layout that compiled code knows");
_Static_assert(offsetof(struct context, blocks) == 64 && offsetof(struct context, max_threads) == 80 &&
                   offsetof(struct context, levels) == 88 && offsetof(struct context, thread) == 112,
               "the layout that compiled code knows");

/* ==== the tables of the library stand here ==== */

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static _Thread_local struct {
    int signature, code;
    int64_t status, words[WORDS];
    char message[KEPT_MESSAGE];
} last;

__attribute__((format(printf, 3, 4))) static int pk_failed(int signature, int code, const char *format, ...)
{
    va_list given;
    va_start(given, format);
    vsnprintf(last.message, sizeof last.message, format, given);
    va_end(given);
    last.signature = signature;
    last.code = code;
    last.status = 0;
    return code;
}

/* The shortest text that means a number. */
static void write_number(char *text, size_t size, double number)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    if (!strpbrk(text, ".enai")) strncat(text, ".0", size - strlen(text) - 1);
}

/* A message in which {0}, {1}... stand for the words of a failure. */
static void write_message(const struct failure *failure, const int64_t *words)
{
    size_t used = 0;
    const char *formats = failure->formats;
    for (const char *at = failure->message; *at && used + 1 < sizeof last.message; at++) {
        char item[40] = {*at, 0};
        if ((*at == '{' || *at == '}') && at[1] == *at) {
            at++;
        } else if (*at == '{' && at[1] >= '0' && at[1] <= '5') {
            size_t place = (size_t)(at[1] - '0');
            if (place < strlen(formats) && formats[place] == 'f') {
                double number;
                memcpy(&number, &words[place], sizeof number);
                write_number(item, sizeof item, number);
            } else {
                snprintf(item, sizeof item, "%lld", (long long)words[place]);
            }
            while (at[1] && *at != '}') at++;
        }
        size_t length = strlen(item);
        if (length > sizeof last.message - 1 - used) length = sizeof last.message - 1 - used;
        memcpy(last.message + used, item, length);
        used += length;
    }
    last.message[used] = 0;
}

PK_API const char *PK(last_message)(void) { return last.message; }

PK_API int PK(last_failure)(int64_t *words)
{
    memcpy(words, last.words, sizeof last.words);
    return (int)last.status;
}

PK_API const char *PK(error_name)(int code)
{
    for (const struct named_code *one = codes; one->name; one++)
        if (one->code == code) return one->name;
    return "";
}

PK_API const char *PK(error_text)(int code)
{
    for (const struct named_code *one = codes; one->name; one++)
        if (one->code == code) return one->text;
    return "no code of this library";
}

/* ---- the processor ----------------------------------------------------------------------------------------------- */

/* The highest level whose instructions this processor has and the system keeps registers for. */
static int cpu_level(void)
{
#ifdef PK_CPU_LEVEL
    return PK_CPU_LEVEL; /* for tests */
#elif !defined(__x86_64__)
    return 1;
#else
    unsigned a, b, c, d, features = 0, more = 0, extended = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    features = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) more = b;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) extended = c;
    const unsigned v2 = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23;
    const unsigned v3 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;
    const unsigned more_v3 = 1u << 3 | 1u << 5 | 1u << 8;
    const unsigned more_v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    if ((features & v2) != v2 || !(extended & 1u)) return 1;
    if ((features & v3) != v3 || (more & more_v3) != more_v3 || !(extended & 1u << 5)) return 2;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6u) != 6u) return 2;
    return (more & more_v4) == more_v4 && (low & 0xe6u) == 0xe6u ? 4 : 3;
#endif
}

static pthread_once_t begun = PTHREAD_ONCE_INIT;
static int chosen = -1; /* the target whose code runs */
static int32_t most_threads = 1;

static void begin(void)
{
    int level = cpu_level();
    for (int k = 0; k < TARGETS; k++)
        if (targets[k].level <= level) chosen = k;
    if (chosen < 0) return;
    targets[chosen].start();
#ifdef PK_THREADS
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) most_threads = CPU_COUNT(&set);
    pthread_atfork(NULL, NULL, targets[chosen].after_fork);
#endif
}

PK_API const char *PK(target)(void)
{
    pthread_once(&begun, begin);
    return chosen < 0 ? "" : targets[chosen].name;
}

#ifdef PK_THREADS
PK_API int PK(set_threads)(int threads)
{
    pthread_once(&begun, begin);
    int before = __atomic_load_n(&most_threads, __ATOMIC_RELAXED);
    if (threads > 0) __atomic_store_n(&most_threads, threads, __ATOMIC_RELAXED);
    return before;
}
#endif

#ifdef PK_OPENMP
PK_HIDDEN void PK(parallel)(struct context *ctx, void (*body)(struct context *, void *, int64_t, int64_t), void *frame,
                            int64_t n, int64_t grain, int32_t most)
{
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int64_t grains = (n - 1) / grain + 1;
    int threads = most < grains ? (int)most : (int)grains;
    if (threads <= 1 || omp_in_parallel()) {
        body(ctx, frame, 0, n);
        return;
    }
    int64_t chunks = 6 * threads < grains ? 6 * threads : grains;
    int64_t length = (grains + chunks - 1) / chunks * grain;
    chunks = (n + length - 1) / length;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t k = 0; k < chunks; k++) {
        int64_t start = k * length;
        body(ctx, frame, start, n - start < length ? n : start + length);
    }
}
#endif

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static int is_contiguous(int rank, const int64_t *extents, const int64_t *strides, int64_t size, int by_columns)
{
    for (int axis = 0; axis < rank; axis++)
        if (extents[axis] == 0) return 1;
    for (int k = 0; k < rank; k++) {
        int axis = by_columns ? k : rank - 1 - k;
        if (extents[axis] == 1) continue;
        if (strides[axis] != size) return 0;
        size *= extents[axis];
    }
    return 1;
}

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* May two elements share memory? As NumPy's arrays are looked at: no is a proof. */
static int overlaps_itself(int rank, const int64_t *extents, const int64_t *strides, int64_t size)
{
    int64_t reach = size, before = -1;
    int done = 0, axes = 0;
    for (int axis = 0; axis < rank; axis++) {
        if (extents[axis] == 0) return 0;
        axes += extents[axis] > 1;
    }
    while (done < axes) { /* the next larger stride */
        int64_t next = INT64_MAX;
        for (int axis = 0; axis < rank; axis++)
            if (extents[axis] > 1 && magnitude(strides[axis]) > before && magnitude(strides[axis]) < next)
                next = magnitude(strides[axis]);
        for (int axis = 0; axis < rank; axis++)
            if (extents[axis] > 1 && magnitude(strides[axis]) == next) {
                if (next < reach) return 1;
                reach += next * (extents[axis] - 1);
                done++;
            }
        before = next;
    }
    return 0;
}

/* Are the axes in the order of their strides that the code is for? */
static int in_order(int rank, const int64_t *extents, const int64_t *strides, const struct array_kind *kind)
{
    int before = -1;
    for (int k = 0; k < rank; k++) {
        int axis = kind->ordered ? kind->order[k] : k;
        if (extents[axis] == 1) continue;
        if ((strides[axis] == 0) != (kind->unit[axis] == 2)) return 0;
        if (strides[axis] == 0) continue;
        if (before >= 0) {
            int64_t slower = magnitude(strides[before]), faster = magnitude(strides[axis]);
            if (before < axis ? slower < faster : slower <= faster) return 0;
        }
        before = axis;
    }
    return 1;
}

/* What an array is that does not fit; NULL: it fits. */
static const char *misfit(int rank, const int64_t *words, const struct array_kind *kind)
{
    const int64_t *extents = words + 2, *strides = extents + rank;
    int empty = 0;
    for (int axis = 0; axis < rank; axis++) {
        if (extents[axis] < 0) return "has a negative extent";
        empty |= extents[axis] == 0;
    }
    if (!empty && words[1] == 0) return "has no data";
    if (!empty && words[1] % kind->alignment) return "is not aligned";
    for (int axis = 0; axis < rank; axis++) {
        if (extents[axis] > 1 && strides[axis] % kind->alignment) return "is not aligned";
        if ((extents[axis] == 1) != (kind->unit[axis] == 1))
            return kind->unit[axis] == 1 ? "has more or less than one element along an axis that must have one"
                                    : "has one element along an axis that must have more (or none)";
    }
    if (kind->inner && extents[rank - 1] != kind->inner) return "is not of the last extent that this code is for: others have a signature of their own";
    int layout = is_contiguous(rank, extents, strides, kind->size, 0)   ? 'C'
                 : is_contiguous(rank, extents, strides, kind->size, 1) ? 'F'
                 : strides[rank - 1] == kind->size                      ? 'S'
                                                                        : 'A';
    if (layout != kind->layout && !(layout == 'S' && kind->layout == 'A')) /* A: any strides but those of C and F */
        return kind->layout == 'C'   ? "is not in C order"
               : kind->layout == 'F' ? "is not in Fortran order"
                                     : "has other strides";
    if (layout == 'S' || layout == 'A') {
        if (kind->writeable && overlaps_itself(rank, extents, strides, kind->size)) return "overlaps itself";
        if (!in_order(rank, extents, strides, kind)) return "has its axes in another order";
    }
    return NULL;
}

/* The range of addresses of an array's elements; empty if it has none. */
static void span(int rank, const int64_t *words, int64_t size, int64_t *low, int64_t *high)
{
    const int64_t *extents = words + 2, *strides = extents + rank;
    *low = words[1];
    *high = words[1] + size;
    for (int axis = 0; axis < rank; axis++) {
        if (extents[axis] == 0) {
            *high = *low;
            return;
        }
        int64_t reach = strides[axis] * (extents[axis] - 1);
        *(reach < 0 ? low : high) += reach;
    }
}

static int overlap(const struct argument *left, const struct argument *right, const int64_t *words)
{
    int64_t a, b, c, d;
    span(left->rank, words + left->slot, left->kind->size, &a, &b);
    span(right->rank, words + right->slot, right->kind->size, &c, &d);
    return a < b && c < d && a < d && c < b;
}

static int check_arguments(int number, const struct signature *s, int64_t *words)
{
    int arrays = 0;
    for (int k = 0; k < s->arguments; k++) {
        const struct argument *one = &s->argument[k];
        int64_t *at = words + one->slot;
        if (one->baked) memcpy(at, one->baked, sizeof *at * (size_t)(one->rank < 0 ? -one->rank : 2 + 2 * one->rank));
        if (one->rank < 0) continue;
        at[0] = ++arrays;
        const char *what = misfit(one->rank, at, one->kind);
        if (what) return pk_failed(number, PARAKEET_BAD_ARGUMENT, "the array '%s' %s", one->name, what);
    }
    int meets = 0;
    for (int k = 0; k < s->pairs; k++) {
        const struct argument *left = &s->argument[s->pair[k][0]], *right = &s->argument[s->pair[k][1]];
        if (!overlap(left, right, words)) continue;
        meets = 1;
        if (s->disjoint)
            return pk_failed(number, PARAKEET_BAD_ARGUMENT, "the arrays '%s' and '%s' overlap", left->name, right->name);
    }
    if (s->pairs && !s->disjoint && !meets)
        return pk_failed(number, PARAKEET_BAD_ARGUMENT, "no arrays overlap, which this signature is for");
    return PARAKEET_OK;
}

/* ---- memory of results ------------------------------------------------------------------------------------------- */

static void unlist(struct context *ctx, struct block *block)
{
    if (block->previous)
        block->previous->next = block->next;
    else
        ctx->blocks = block->next;
    if (block->next) block->next->previous = block->previous;
    block->owner = NULL;
}

PK_API void PK(free)(void *owner)
{
    struct block *block = owner;
    if (block && __atomic_sub_fetch(&block->count, 1, __ATOMIC_ACQ_REL) == 0) free(block->base);
}

/* From now on a result owns its block, or shares it with others. */
static void hand_over(struct context *ctx, const struct signature *s, int64_t *results)
{
    for (int k = 0; k < s->results; k++) {
        int rank = s->result[k].rank;
        int64_t *at = results + s->result[k].slot;
        if (rank < 0) continue;
        if (at[0] || at[1]) {
            at[2] = 0;
            continue;
        }
        struct block *block = (struct block *)(intptr_t)at[2];
        if (block->owner) {
            unlist(ctx, block);
            block->count = 0;
        }
        block->count++;
    }
    for (struct block *block = ctx->blocks, *next; block; block = next) {
        next = block->next;
        free(block->base);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

PK_API int PK(call)(int number, int64_t *arguments, int64_t *results)
{
    struct context ctx __attribute__((aligned(64)));
    if (number < 1 || number > SIGNATURES)
        return pk_failed(number, PARAKEET_BAD_ARGUMENT, "there is no signature %d", number);
    const struct signature *s = &signatures[number - 1];
    pthread_once(&begun, begin);
    if (chosen < 0)
        return pk_failed(number, PARAKEET_NO_CPU, "this processor lacks instructions of %s", targets[0].name);
    int code = check_arguments(number, s, arguments);
    if (code) return code;
    memset(&ctx, 0, sizeof ctx);
    ctx.max_threads = __atomic_load_n(&most_threads, __ATOMIC_RELAXED);
    if (s->recursive) {
        ctx.levels = RECURSION_LIMIT;
        ctx.floor = targets[chosen].stack_floor();
    }
    int32_t status = s->code[chosen](&ctx, arguments, results);
    if (status == 0) {
        hand_over(&ctx, s, results);
        return PARAKEET_OK;
    }
    for (struct block *block = ctx.blocks, *next; block; block = next) {
        next = block->next;
        free(block->base);
    }
    if (status < 0 || status >= s->failures) {
        code = pk_failed(number, PARAKEET_NO_MEMORY, "out of memory");
    } else {
        const struct failure *failure = &s->failure[status];
        memcpy(last.words, ctx.words, sizeof last.words);
        write_message(failure, ctx.words);
        code = failure->code;
    }
    last.signature = number;
    last.code = code;
    last.status = status;
    return code;
}
