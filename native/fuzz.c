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

static struct key KEYS[WANTED] = {{"usage_usec", 10}, {"oom_kill", 8}, {"Read", 4}};
static int32_t PLACES[WANTED] = {1, 4, 9};

static void parse_copy(struct layout *layout, const uint8_t *data, size_t size)
{
    double out[WANTED];
    /* An exact allocation: reading one byte beyond the end is seen. */
    char *copy = malloc(size + 1);
    if (!copy)
        return;
    memcpy(copy, data, size);
    copy[size] = '\0';
    parse_layout(layout, copy, size, out);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct line lines[LINES];
    static char memory[4096];
    if (size < 2)
        return 0;
    struct layout layout = {
        .kind = (enum kind)(data[0] % 7),
        .wanted = data[0] % 7 == NUMBER ? 1 : WANTED,
        .keys = KEYS,
        .places = PLACES,
        .unlimited_from = data[0] & 64 ? 4.6e18 : 1e308,
        .lines = lines,
        .line_room = data[0] & 128 ? LINES : 4,
        .memory = memory,
        .memory_room = sizeof memory,
    };
    size_t middle = 2 + (size - 2) * data[1] / 256;
    parse_copy(&layout, data + 2, middle - 2);
    parse_copy(&layout, data + middle, size - middle);
    return 0;
}
