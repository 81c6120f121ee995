#include "parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};

static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* Blanks that Python's split knows and the kernel never writes. */
static int is_odd(char c) { return c == '\r' || c == '\v' || c == '\f' || c == '\0'; }

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Where a token may end: blanks, line ends, odd bytes. The 0 behind the data is one of them. */
static const unsigned char ENDS[256] = {
    ['\0'] = 1, ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1, [' '] = 1,
};

static const char *pass_token(const char *c)
{
    while (!ENDS[(unsigned char)*c])
        c++;
    return c;
}

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
    /* The 0 behind the data is no digit. */
    while (is_digit(*c))
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
    c = pass_token(c);
    if (c < end && is_odd(*c))
        return UNSURE;
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

/*
 * The value of a wanted key is the second token of its first line; what else
 * a line or the file holds cannot change it. So lines that are not wanted are
 * passed over, once their key is known to be the remembered one.
 */
static int parse_remembered(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = data;
    const char *key = layout->memory;
    for (size_t line = 0; line < layout->line_count; line++) {
        struct line known = layout->lines[line];
        if ((size_t)(end - c) <= known.length || memcmp(c, key, known.length) != 0 || !is_blank(c[known.length]))
            return UNSURE;
        c += known.length;
        key += known.length;
        if (known.slot >= 0 && parse_value(&c, end, &out[known.slot]) != SURE)
            return UNSURE;
        c = skip_line(c, end);
    }
    return layout->complete || c == end ? SURE : UNSURE;
}

static int find_slot(const struct layout *layout, const struct key *key, const double *out)
{
    for (size_t slot = 0; slot < layout->wanted; slot++)
        if (isnan(out[slot]) && same_key(key, &layout->keys[slot]))
            return (int)slot;
    return UNWANTED;
}

/* Search every line, and remember what was found where. */
static int parse_searching(struct layout *layout, const char *data, const char *end, double *out)
{
    size_t lines = 0, found = 0, used = 0;
    for (size_t slot = 0; slot < layout->wanted; slot++)
        out[slot] = NAN;
    layout->line_count = 0;
    for (const char *c = data; c < end && found < layout->wanted; lines++) {
        const char *start = c;
        struct key key;
        if (lines >= layout->line_room || take_key(&c, end, &key) != SURE)
            return UNSURE;
        size_t written = (size_t)(c - start);
        if (c == end || !is_blank(*c) || written > UINT16_MAX || used + written > layout->memory_room)
            return UNSURE;
        memcpy(layout->memory + used, start, written);
        used += written;
        int slot = find_slot(layout, &key, out);
        layout->lines[lines].length = (uint16_t)written;
        layout->lines[lines].slot = (int16_t)slot;
        if (slot >= 0 && parse_value(&c, end, &out[slot]) != SURE)
            return UNSURE;
        found += slot >= 0;
        c = skip_line(c, end);
    }
    if (found == 0)
        return UNSURE;
    layout->line_count = lines;
    layout->complete = found == layout->wanted;
    return SURE;
}

static int parse_key_values(struct layout *layout, const char *data, const char *end, double *out)
{
    if (layout->line_count) {
        for (size_t slot = 0; !layout->complete && slot < layout->wanted; slot++)
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
        c = pass_token(c);
        if (c < end && is_odd(*c))
            return UNSURE;
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

/* Wanted places ascend; the caller checked it. What stands behind the last is not looked at. */
static int parse_fields(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = data;
    size_t next = 0;
    for (int32_t token = 0; next < layout->wanted; token++) {
        while (c < end && (is_blank(*c) || *c == '\n'))
            c++;
        if (c == end)
            return UNSURE;
        if (layout->places[next] == token) {
            if (parse_token(&c, end, &out[next++]) != SURE)
                return UNSURE;
        } else {
            c = pass_token(c);
            if (c < end && is_odd(*c))
                return UNSURE;
        }
    }
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

/* The wanted tokens of a device's line behind its name. */
static int parse_row(const struct layout *layout, const char *c, const char *end, double *out)
{
    size_t next = 0, token = 0;
    for (; next < layout->width || token < layout->least; token++) {
        while (c < end && is_blank(*c))
            c++;
        if (c == end)
            break;
        if (next < layout->width && (size_t)layout->places[next] == token) {
            if (parse_token(&c, end, &out[next++]) != SURE)
                return UNSURE;
        } else {
            c = pass_token(c);
            if (c < end && is_odd(*c))
                return UNSURE;
        }
    }
    if (token < layout->least)
        return UNSURE;
    /* Older kernels write fewer. */
    while (next < layout->width)
        out[next++] = NAN;
    return SURE;
}

static int parse_rows(const struct layout *layout, const char *data, const char *end, double *out)
{
    const char *c = data;
    const char *name = layout->memory;
    for (size_t line = 0; line < layout->line_count; line++) {
        struct line known = layout->lines[line];
        if (c == end || (size_t)(end - c) < known.length || memcmp(c, name, known.length) != 0)
            return UNSURE;
        const char *next = skip_line(c, end);
        const char *stop = next[-1] == '\n' ? next - 1 : next;
        c += known.length;
        name += known.length;
        if (known.slot != HEADER && !layout->separated && c < stop && !is_blank(*c))
            return UNSURE;
        if (c > stop || (known.slot >= 0 && parse_row(layout, c, stop, out + (size_t)known.slot * layout->width) != SURE))
            return UNSURE;
        c = next;
    }
    return c == end ? SURE : UNSURE;
}

/* CRC-32 as zlib has it, four bits at a time: a list of pids is short. */
static uint32_t check_bytes(const char *data, const char *end)
{
    static const uint32_t STEPS[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t check = 0xffffffff;
    for (const char *c = data; c < end; c++) {
        check ^= (unsigned char)*c;
        check = (check >> 4) ^ STEPS[check & 15];
        check = (check >> 4) ^ STEPS[check & 15];
    }
    return ~check;
}

/* How many, and a check of which: who sees the same check need not look. */
static int parse_pids(const char *data, const char *end, double *out)
{
    size_t count = 0;
    for (const char *c = data; c < end; count++) {
        const char *start = c;
        while (c < end && is_digit(*c))
            c++;
        if (c == start || c == end || *c != '\n')
            return UNSURE;
        c++;
    }
    out[0] = (double)count;
    out[1] = (double)check_bytes(data, end);
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
    case ROWS:
        return parse_rows(layout, data, end, out);
    case PIDS:
        return parse_pids(data, end, out);
    }
    return UNSURE;
}
