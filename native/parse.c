#include "parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};

static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* Blanks that Python's split knows and the kernel never writes. */
static int is_odd(char c) { return c == '\r' || c == '\v' || c == '\f' || c == '\0'; }

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/*
 * One number at *cursor: digits, or digits.digits, or "max". Up to 19 digits
 * fit a uint64 and convert to the nearest double; a fraction is divided by an
 * exact power of ten only while its digits stay exact, which gives the same
 * double as a full parser.
 */
static int parse_number(const char **cursor, const char *end, double *out)
{
    const char *c = *cursor;
    if (end - c >= 3 && memcmp(c, "max", 3) == 0) {
        *out = INFINITY;
        *cursor = c + 3;
        return SURE;
    }
    int negative = c < end && *c == '-';
    if (negative)
        c++;
    const char *start = c;
    uint64_t whole = 0;
    while (c < end && is_digit(*c))
        whole = whole * 10 + (uint64_t)(*c++ - '0');
    size_t digits = (size_t)(c - start);
    if (digits == 0 || digits > 19)
        return UNSURE;
    size_t fraction = 0;
    if (c < end && *c == '.') {
        c++;
        while (c < end && is_digit(*c) && fraction < 11) {
            whole = whole * 10 + (uint64_t)(*c++ - '0');
            fraction++;
        }
        if (fraction == 0 || fraction > 10 || digits + fraction > 15)
            return UNSURE;
    }
    double value = (double)whole / POWERS[fraction];
    *out = negative ? -value : value;
    *cursor = c;
    return SURE;
}

/* A number that ends where a token ends. */
static int parse_token(const char **cursor, const char *end, double *out)
{
    if (parse_number(cursor, end, out) != SURE)
        return UNSURE;
    const char *c = *cursor;
    return c == end || is_blank(*c) || *c == '\n' ? SURE : UNSURE;
}

static int parse_whole(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = data;
    if (parse_token(&c, end, out) != SURE)
        return UNSURE;
    if (c < end && *c == '\n')
        c++;
    if (c != end)
        return UNSURE;
    if (!isnan(layout->unlimited_from) && (*out >= layout->unlimited_from || *out < 0))
        *out = INFINITY;
    return SURE;
}

/* The key of a line: up to a blank, one colon left off. Advances to the blank. */
static int take_key(const char **cursor, const char *end, struct key *key)
{
    const char *c = *cursor;
    key->text = c;
    while (c < end && !is_blank(*c) && *c != '\n') {
        if (is_odd(*c))
            return UNSURE;
        c++;
    }
    key->length = (size_t)(c - key->text);
    if (key->length > 1 && key->text[key->length - 1] == ':')
        key->length--;
    /* The other reader strips every colon; two are not the kernel's. */
    if (key->length == 0 || key->text[key->length - 1] == ':')
        return UNSURE;
    *cursor = c;
    return SURE;
}

static int same_key(const struct key *a, const struct key *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static const char *skip_line(const char *c, const char *end)
{
    const char *stop = memchr(c, '\n', (size_t)(end - c));
    return stop ? stop + 1 : end;
}

/*
 * The rest of a line behind its value: nothing, or kB. A line that goes on is
 * not the kernel's `key value`, and the other reader may see it otherwise.
 */
static int finish_line(const char **cursor, const char *end)
{
    const char *c = *cursor;
    while (c < end && is_blank(*c))
        c++;
    if (end - c >= 2 && c[0] == 'k' && c[1] == 'B')
        c += 2;
    if (c < end && *c != '\n')
        return UNSURE;
    *cursor = c < end ? c + 1 : end;
    return SURE;
}

/* Over the value of a line that is not wanted. */
static int pass_value(const char **cursor, const char *end)
{
    const char *c = *cursor;
    while (c < end && is_blank(*c))
        c++;
    const char *start = c;
    while (c < end && !is_blank(*c) && *c != '\n') {
        if (is_odd(*c))
            return UNSURE;
        c++;
    }
    if (c == start)
        return UNSURE;
    *cursor = c;
    return SURE;
}

static int parse_value(const char **cursor, const char *end, double *out)
{
    const char *c = *cursor;
    if (c == end || !is_blank(*c))
        return UNSURE;
    while (c < end && is_blank(*c))
        c++;
    if (parse_token(&c, end, out) != SURE)
        return UNSURE;
    *cursor = c;
    return SURE;
}

/* Verify the remembered lines; UNSURE sends the caller to the search. */
static int parse_remembered(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = data;
    const char *key = layout->memory;
    for (size_t line = 0; line < layout->line_count; line++) {
        struct line known = layout->lines[line];
        if ((size_t)(end - c) <= known.length || memcmp(c, key, known.length) != 0)
            return UNSURE;
        c += known.length;
        key += known.length;
        if (!is_blank(*c))
            return UNSURE;
        if ((known.slot >= 0 ? parse_value(&c, end, &out[known.slot]) : pass_value(&c, end)) != SURE)
            return UNSURE;
        if (finish_line(&c, end) != SURE)
            return UNSURE;
    }
    return c >= end ? SURE : UNSURE;
}

static int find_slot(const struct layout *layout, const struct key *key, const double *out)
{
    for (size_t slot = 0; slot < layout->wanted; slot++)
        if (isnan(out[slot]) && same_key(key, &layout->keys[slot]))
            return (int)slot;
    return -1;
}

/* Search every line, and remember what was found where. */
static int parse_searching(struct layout *layout, const char *data, const char *end, double *out)
{
    size_t lines = 0, found = 0, used = 0;
    for (size_t slot = 0; slot < layout->wanted; slot++)
        out[slot] = NAN;
    layout->line_count = 0;
    for (const char *c = data; c < end; lines++) {
        const char *start = c;
        struct key key;
        if (lines >= layout->line_room || take_key(&c, end, &key) != SURE)
            return UNSURE;
        size_t written = (size_t)(c - start);
        if (written > UINT16_MAX || used + written > layout->memory_room)
            return UNSURE;
        memcpy(layout->memory + used, start, written);
        used += written;
        layout->lines[lines].length = (uint16_t)written;
        layout->lines[lines].slot = (int16_t)find_slot(layout, &key, out);
        int16_t slot = layout->lines[lines].slot;
        if ((slot >= 0 ? parse_value(&c, end, &out[slot]) : pass_value(&c, end)) != SURE)
            return UNSURE;
        if (finish_line(&c, end) != SURE)
            return UNSURE;
        found += slot >= 0;
    }
    if (found == 0)
        return UNSURE;
    layout->line_count = lines;
    return SURE;
}

static int parse_key_values(struct layout *layout, const char *data, const char *end, double *out)
{
    if (layout->line_count) {
        for (size_t slot = 0; slot < layout->wanted; slot++)
            out[slot] = NAN;
        if (parse_remembered(layout, data, end, out) == SURE)
            return SURE;
    }
    return parse_searching(layout, data, end, out);
}

/* The first tokens of text that holds nothing but blanks and line ends between them. */
struct token {
    const char *start, *stop;
};

static int split(const char *data, const char *end, struct token *tokens, size_t room, size_t *count)
{
    size_t found = 0;
    const char *c = data;
    while (c < end && found < room) {
        while (c < end && (is_blank(*c) || *c == '\n'))
            c++;
        if (c == end)
            break;
        tokens[found].start = c;
        while (c < end && !is_blank(*c) && *c != '\n') {
            if (is_odd(*c))
                return UNSURE;
            c++;
        }
        tokens[found++].stop = c;
    }
    *count = found;
    return SURE;
}

static int parse_whole_token(const struct token *token, double *out)
{
    const char *c = token->start;
    return parse_number(&c, token->stop, out) == SURE && c == token->stop ? SURE : UNSURE;
}

static int token_is(const struct token *token, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(token->stop - token->start) == length && memcmp(token->start, text, length) == 0;
}

static int parse_pressure(const struct layout *layout, const char *data, const char *end, double *out)
{
    static const char *const NAMES[] = {"", "avg10=", "avg60=", "avg300=", "total="};
    struct token tokens[11];
    size_t count;
    if (split(data, end, tokens, 11, &count) != SURE || (count != 5 && count != 10) || !token_is(&tokens[0], "some"))
        return UNSURE;
    if (count == 10 && !token_is(&tokens[5], "full"))
        return UNSURE;
    for (size_t slot = 0; slot < layout->wanted; slot++) {
        size_t place = (size_t)layout->places[slot];
        if (place >= count) {
            out[slot] = NAN;
            continue;
        }
        const char *name = NAMES[place % 5];
        struct token token = tokens[place];
        size_t length = strlen(name);
        if ((size_t)(token.stop - token.start) <= length || memcmp(token.start, name, length) != 0)
            return UNSURE;
        token.start += length;
        if (parse_whole_token(&token, &out[slot]) != SURE)
            return UNSURE;
    }
    return SURE;
}

/* loadavg has five fields, /proc/PID/stat fifty behind the name. */
#define MOST_FIELDS 64

static int parse_fields(const struct layout *layout, const char *data, const char *end, double *out)
{
    struct token tokens[MOST_FIELDS];
    size_t count, needed = 0;
    for (size_t slot = 0; slot < layout->wanted; slot++)
        if ((size_t)layout->places[slot] >= needed)
            needed = (size_t)layout->places[slot] + 1;
    /* What stands behind the last wanted field need not be looked at. */
    if (needed > MOST_FIELDS || split(data, end, tokens, needed, &count) != SURE || count < needed)
        return UNSURE;
    for (size_t slot = 0; slot < layout->wanted; slot++)
        if (parse_whole_token(&tokens[layout->places[slot]], &out[slot]) != SURE)
            return UNSURE;
    return SURE;
}

static int parse_process_stat(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = end;
    while (c > data && c[-1] != ')')
        c--;
    return c == data ? UNSURE : parse_fields(layout, c, end, out);
}

static int parse_pair_sums(const struct layout *layout, const char *data, const char *end, double *out)
{
    for (size_t slot = 0; slot < layout->wanted; slot++)
        out[slot] = 0;
    const char *c = data;
    while (c < end) {
        if (is_blank(*c) || *c == '\n') {
            c++;
            continue;
        }
        const char *start = c;
        const char *equals = NULL, *colon = NULL;
        while (c < end && !is_blank(*c) && *c != '\n') {
            if (is_odd(*c))
                return UNSURE;
            if (*c == '=' && !equals)
                equals = c;
            if (*c == ':')
                colon = c;
            c++;
        }
        if (!equals) {
            if (!colon)
                return UNSURE;
            continue;
        }
        struct key key = {start, (size_t)(equals - start)};
        for (size_t slot = 0; slot < layout->wanted; slot++) {
            if (same_key(&key, &layout->keys[slot])) {
                struct token token = {equals + 1, c};
                double value;
                if (parse_whole_token(&token, &value) != SURE)
                    return UNSURE;
                out[slot] += value;
                break;
            }
        }
    }
    return SURE;
}

static int parse_operation_sums(const struct layout *layout, const char *data, const char *end, double *out)
{
    for (size_t slot = 0; slot < layout->wanted; slot++)
        out[slot] = 0;
    for (const char *c = data; c < end;) {
        const char *next = skip_line(c, end);
        struct token tokens[4];
        size_t count;
        if (split(c, next, tokens, 4, &count) != SURE)
            return UNSURE;
        if (count == 3) {
            struct key key = {tokens[1].start, (size_t)(tokens[1].stop - tokens[1].start)};
            for (size_t slot = 0; slot < layout->wanted; slot++) {
                if (same_key(&key, &layout->keys[slot])) {
                    double value;
                    if (parse_whole_token(&tokens[2], &value) != SURE)
                        return UNSURE;
                    out[slot] += value;
                }
            }
        } else if (count != 2 || !token_is(&tokens[0], "Total")) {
            return UNSURE;
        }
        c = next;
    }
    return SURE;
}

int parse_layout(struct layout *layout, const char *data, size_t length, double *out)
{
    const char *end = data + length;
    switch (layout->kind) {
    case NUMBER:
        return parse_whole(layout, data, end, out);
    case KEY_VALUES:
        return parse_key_values(layout, data, end, out);
    case PRESSURE:
        return parse_pressure(layout, data, end, out);
    case FIELDS:
        return parse_fields(layout, data, end, out);
    case PROCESS_STAT:
        return parse_process_stat(layout, data, end, out);
    case PAIR_SUMS:
        return parse_pair_sums(layout, data, end, out);
    case OPERATION_SUMS:
        return parse_operation_sums(layout, data, end, out);
    }
    return UNSURE;
}
