/*
 * Fuzzing the parsers: any bytes, any layout, twice in a row so that what was
 * remembered of the first file meets a second one. Built by `make fuzz` with
 * clang's libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer.
 */
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define LINES 4096
#define WANTED 3
#define ROWS_MADE 4
#define KINDS 9

static struct key KEYS[WANTED] = {{"usage_usec", 10}, {"oom_kill", 8}, {"Read", 4}};
static int32_t PLACES[WANTED] = {1, 4, 9};

static void parse_copy(struct layout *layout, const uint8_t *data, size_t size)
{
    /* Exact allocations: one byte beyond the end, or one cell, is seen. */
    double *out = malloc(layout->wanted * sizeof *out);
    char *copy = malloc(size + 1);
    if (out && copy) {
        memcpy(copy, data, size);
        copy[size] = '\0';
        parse_layout(layout, copy, size, out);
    }
    free(out);
    free(copy);
}

/* As the Python reader would tell of a first file: how each line begins, and which row it is. */
static void learn_rows(struct layout *layout, const uint8_t *data, size_t size)
{
    size_t used = 0, line = 0;
    for (size_t start = 0; start < size && line < LINES; line++) {
        size_t stop = start;
        while (stop < size && data[stop] != '\n')
            stop++;
        size_t length = (stop - start) * (data[start] % 4) / 3;
        length = length > stop - start ? stop - start : length;
        if (used + length > layout->memory_room)
            break;
        memcpy(layout->memory + used, data + start, length);
        used += length;
        layout->lines[line].length = (uint16_t)length;
        layout->lines[line].slot = (int16_t)((int)(line % (ROWS_MADE + 2)) - 2);
        start = stop + 1;
    }
    layout->line_count = line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct line lines[LINES];
    static char memory[4096];
    if (size < 2)
        return 0;
    enum kind kind = (enum kind)(data[0] % KINDS);
    struct layout layout = {
        .kind = kind,
        .wanted = kind == NUMBER ? 1 : kind == PIDS ? 2 : kind == ROWS ? ROWS_MADE * WANTED : WANTED,
        .keys = KEYS,
        .places = PLACES,
        .unlimited_from = data[0] & 64 ? 4.6e18 : 1e308,
        .lines = lines,
        .line_room = data[0] & 128 ? LINES : 4,
        .width = WANTED,
        .least = data[0] & 64 ? 11 : 1,
        .separated = data[0] & 32,
        .memory = memory,
        .memory_room = sizeof memory,
    };
    size_t middle = 2 + (size - 2) * data[1] / 256;
    if (kind == ROWS)
        learn_rows(&layout, data + 2, middle - 2);
    parse_copy(&layout, data + 2, middle - 2);
    parse_copy(&layout, data + middle, size - middle);
    return 0;
}
