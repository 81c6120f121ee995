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

enum kind { NUMBER, KEY_VALUES, PRESSURE, FIELDS, PROCESS_STAT, PAIR_SUMS, OPERATION_SUMS, ROWS, PIDS };

struct key {
    const char *text;
    size_t length;
};

/* slot: which wanted key or row the line is, or one of these. */
enum { UNWANTED = -1, HEADER = -2 };

struct line {
    int16_t slot;
    uint16_t length;
};

/* One layout: which values are wanted, and for KEY_VALUES and ROWS where they stand. */
struct layout {
    enum kind kind;
    size_t wanted;
    /* KEY_VALUES, PAIR_SUMS, OPERATION_SUMS: the keys, in column order. */
    struct key *keys;
    /* FIELDS, PROCESS_STAT, ROWS: token numbers. PRESSURE: line * 5 + field. */
    int32_t *places;
    /* NUMBER: from here on, and below zero, a value means "unlimited"; NaN when it never does. */
    double unlimited_from;
    /*
     * KEY_VALUES: the lines of the last file up to the last wanted one: each
     * key as it was written, and which wanted one it is. A kernel writes the
     * same keys in the same order for every cgroup, so the next file is
     * verified line by line instead of searched.
     *
     * ROWS: the lines as the Python reader found them; the bytes up to the
     * device's name stand for a key. A file that differs is left to it.
     */
    struct line *lines;
    size_t line_count;
    size_t line_room;
    /* KEY_VALUES: every wanted key was found, what follows cannot matter. */
    int complete;
    /* ROWS: cells of a row; tokens it must have; whether a separator ends the name. */
    size_t width;
    size_t least;
    int separated;
    /* The keys of those lines, one behind the other. */
    char *memory;
    size_t memory_room;
};

/* Fill out[0..wanted) from data; SURE or UNSURE. data[length] must be readable and 0. */
int parse_layout(struct layout *layout, const char *data, size_t length, double *out);

#endif
