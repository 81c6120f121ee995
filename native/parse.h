/*
 * Parsers of kernel text: bytes in, doubles out, or "ask the other reader".
 *
 * Every function here accepts only what it is certain about. For anything
 * else - a number with twenty digits, an odd blank, a missing line - it says
 * UNSURE, and the caller lets the Python reader decide. So the two cannot
 * disagree on a value, and hostile bytes can at worst make us slow.
 *
 * No Python here: this file is also what the fuzzer compiles.
 */
#ifndef NODESCOPE_PARSE_H
#define NODESCOPE_PARSE_H

#include <stddef.h>
#include <stdint.h>

enum { SURE = 0, UNSURE = -1 };

enum kind { NUMBER, KEY_VALUES, PRESSURE, FIELDS, PROCESS_STAT, PAIR_SUMS, OPERATION_SUMS };

struct key {
    const char *text;
    size_t length;
};

struct line {
    int16_t slot;
    uint16_t length;
};

/* One layout: which values are wanted, and for KEY_VALUES where they stood. */
struct layout {
    enum kind kind;
    size_t wanted;
    /* KEY_VALUES, PAIR_SUMS, OPERATION_SUMS: the keys, in column order. */
    struct key *keys;
    /* FIELDS, PROCESS_STAT: token numbers. PRESSURE: line * 5 + field. */
    int32_t *places;
    /* NUMBER: from here on, and below zero, a value means "unlimited"; NaN when it never does. */
    double unlimited_from;
    /*
     * KEY_VALUES: every line of the last file: its key as it was written, and
     * which wanted one it is, or -1. A kernel writes the same keys in the same
     * order for every cgroup, so the next file is verified line by line
     * instead of searched.
     */
    struct line *lines;
    size_t line_count;
    size_t line_room;
    /* The keys of those lines, one behind the other. */
    char *memory;
    size_t memory_room;
};

/* Fill out[0..wanted) from data; SURE or UNSURE. data[length] must be readable and 0. */
int parse_layout(struct layout *layout, const char *data, size_t length, double *out);

#endif
