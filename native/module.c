/*
 * The native reader: pread and parse of a whole segment without the interpreter lock.
 *
 *   make_layouts(list of (kind, keys, places, unlimited_from)) -> capsule
 *   read_grid(capsule, program, values, status) -> number of files that were not read
 *   list_pids(descriptor of /proc) -> int32 in bytes
 *   watch_arenas() -> whether Python's heap is known; give_back_pools() -> bytes; see arenas.c
 *
 * program   one entry a file: int32 descriptor, int32 layout, int64 first cell, see struct entry
 * values    writable float64 cells, NaN where nothing will be written
 * status    writable int32, one a file: 0 read, > 0 errno, -1 the Python reader must decide
 *
 * Limited API of Python 3.11: one build serves every later version.
 */
/* For syscall(). */
#define _GNU_SOURCE
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__) && defined(__LP64__)
#include <sys/syscall.h>
#endif

#include "arenas.h"
#include "parse.h"

/*
 * The C library's pread is a point of cancellation, which costs two atomic
 * operations as soon as there are threads: 2 % of a tick.
 */
static ssize_t read_from_start(int descriptor, char *buffer, size_t bytes)
{
#if defined(__linux__) && defined(__LP64__)
    return syscall(SYS_pread64, descriptor, buffer, bytes, (off_t)0);
#else
    return pread(descriptor, buffer, bytes, 0);
#endif
}

/* Larger files (a machine with thousands of interrupts) go to the Python reader. */
#define BUFFER_BYTES 65536
/* Lines remembered at the most; memory.stat has some 50, vmstat some 200. */
#define MOST_LINES 4096
#define LAYOUTS "nodescope.layouts"
/*
 * What the functions take and give, as one number; collect/files/native.py has its
 * twin. Both grow when either side changes: a library left over from an older
 * version would read our arrays as something else.
 */
#define INTERFACE 1

struct entry {
    int32_t descriptor;
    int32_t layout;
    int64_t cell;
};

struct layouts {
    size_t count;
    struct layout *items;
    char *buffer;
    /* Set while a thread reads without the interpreter lock: what is remembered is not shared. */
    int busy;
};

static void free_layouts(struct layouts *layouts)
{
    if (!layouts)
        return;
    for (size_t i = 0; i < layouts->count; i++) {
        struct layout *layout = &layouts->items[i];
        /* The keys end with one that has no text. */
        for (struct key *key = layout->keys; key && key->text; key++)
            free((char *)key->text);
        free(layout->keys);
        free(layout->places);
        free(layout->lines);
        free(layout->memory);
    }
    free(layouts->items);
    free(layouts->buffer);
    free(layouts);
}

static void destroy_capsule(PyObject *capsule)
{
    free_layouts(PyCapsule_GetPointer(capsule, LAYOUTS));
}

/* How many cells a file of this layout fills; 0 when the description makes no sense. */
static size_t count_wanted(enum kind kind, Py_ssize_t keys, Py_ssize_t places)
{
    switch (kind) {
    case NUMBER:
        return 1;
    case PIDS:
        return 2;
    case KEY_VALUES:
    case PAIR_SUMS:
    case OPERATION_SUMS:
        return (size_t)keys;
    default:
        return (size_t)places;
    }
}

static int refuse(const char *text)
{
    PyErr_SetString(PyExc_ValueError, text);
    return -1;
}

static int fill_keys(struct layout *layout, PyObject *keys, Py_ssize_t count)
{
    for (Py_ssize_t slot = 0; slot < count; slot++) {
        char *text;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(keys, slot), &text, &length) < 0)
            return -1;
        char *copy = malloc((size_t)length + 1);
        if (!copy) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(copy, text, (size_t)length);
        layout->keys[slot].text = copy;
        layout->keys[slot].length = (size_t)length;
    }
    return 0;
}

static int fill_places(struct layout *layout, PyObject *places, Py_ssize_t count)
{
    for (Py_ssize_t slot = 0; slot < count; slot++) {
        long place = PyLong_AsLong(PyTuple_GetItem(places, slot));
        if (PyErr_Occurred())
            return -1;
        if (place < 0 || place > INT16_MAX)
            return refuse("a place is out of range");
        /* Tokens are passed once, from left to right. */
        if (layout->kind != PRESSURE && slot && place <= layout->places[slot - 1])
            return refuse("places do not ascend");
        layout->places[slot] = (int32_t)place;
    }
    return 0;
}

/* keys: the lines' beginnings. places: width, least, separated, the places, a slot a line. */
static int fill_rows(struct layout *layout, PyObject *keys, PyObject *places, Py_ssize_t lines)
{
    enum { HEAD = 3 };
    Py_ssize_t count = PyTuple_Size(places);
    long head[HEAD];
    for (Py_ssize_t i = 0; i < HEAD; i++) {
        head[i] = i < count ? PyLong_AsLong(PyTuple_GetItem(places, i)) : -1;
        if (PyErr_Occurred())
            return -1;
    }
    if (head[0] < 1 || head[1] < 0 || count - HEAD - head[0] != lines)
        return refuse("the places of rows make no sense");
    layout->width = (size_t)head[0];
    layout->least = (size_t)head[1];
    layout->separated = head[2] != 0;
    layout->places = calloc(layout->width, sizeof *layout->places);
    layout->lines = calloc((size_t)lines + 1, sizeof *layout->lines);
    layout->memory = malloc(BUFFER_BYTES);
    if (!layout->places || !layout->lines || !layout->memory) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *wanted = PyTuple_GetSlice(places, HEAD, HEAD + head[0]);
    int filled = wanted ? fill_places(layout, wanted, head[0]) : -1;
    Py_XDECREF(wanted);
    if (filled < 0)
        return -1;
    size_t used = 0, rows = 0;
    for (Py_ssize_t line = 0; line < lines; line++) {
        char *text;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(keys, line), &text, &length) < 0)
            return -1;
        long slot = PyLong_AsLong(PyTuple_GetItem(places, HEAD + head[0] + line));
        if (PyErr_Occurred())
            return -1;
        if (used + (size_t)length > BUFFER_BYTES || slot < HEADER || slot > INT16_MAX)
            return refuse("a line of rows makes no sense");
        memcpy(layout->memory + used, text, (size_t)length);
        used += (size_t)length;
        layout->lines[line].length = (uint16_t)length;
        layout->lines[line].slot = (int16_t)slot;
        if (slot >= 0 && (size_t)slot + 1 > rows)
            rows = (size_t)slot + 1;
    }
    layout->line_count = (size_t)lines;
    layout->wanted = rows * layout->width;
    return 0;
}

/* keys: a tuple of bytes; places: a tuple of int; either may be empty. */
static int fill_layout(struct layout *layout, PyObject *keys, PyObject *places)
{
    Py_ssize_t key_count = PyTuple_Size(keys), place_count = PyTuple_Size(places);
    if (key_count < 0 || place_count < 0)
        return -1;
    if (layout->kind == ROWS)
        return fill_rows(layout, keys, places, key_count);
    layout->wanted = count_wanted(layout->kind, key_count, place_count);
    if (key_count > INT16_MAX || (key_count && layout->wanted != (size_t)key_count))
        return refuse("keys where none belong");
    layout->keys = calloc((size_t)key_count + 1, sizeof *layout->keys);
    layout->places = calloc((size_t)place_count + 1, sizeof *layout->places);
    if (layout->kind == KEY_VALUES) {
        layout->line_room = MOST_LINES;
        layout->lines = calloc(MOST_LINES, sizeof *layout->lines);
        layout->memory_room = BUFFER_BYTES;
        layout->memory = malloc(BUFFER_BYTES);
    }
    if (!layout->keys || !layout->places || (layout->kind == KEY_VALUES && (!layout->lines || !layout->memory))) {
        PyErr_NoMemory();
        return -1;
    }
    return fill_keys(layout, keys, key_count) < 0 || fill_places(layout, places, place_count) < 0 ? -1 : 0;
}

static PyObject *make_layouts(PyObject *module, PyObject *list)
{
    (void)module;
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return NULL;
    struct layouts *layouts = calloc(1, sizeof *layouts);
    if (layouts) {
        layouts->items = calloc((size_t)count + 1, sizeof *layouts->items);
        layouts->buffer = malloc(BUFFER_BYTES);
    }
    if (!layouts || !layouts->items || !layouts->buffer) {
        free_layouts(layouts);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int kind;
        PyObject *keys, *places;
        struct layout *layout = &layouts->items[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iO!O!d", &kind, &PyTuple_Type, &keys, &PyTuple_Type, &places,
                              &layout->unlimited_from)) {
            free_layouts(layouts);
            return NULL;
        }
        layouts->count = (size_t)i + 1;
        layout->kind = (enum kind)kind;
        if (kind < NUMBER || kind > PIDS ? refuse("no such kind of layout") < 0 : fill_layout(layout, keys, places) < 0) {
            free_layouts(layouts);
            return NULL;
        }
    }
    return PyCapsule_New(layouts, LAYOUTS, destroy_capsule);
}

/* One file: 0 read, errno, or -1. Runs without the interpreter lock: no Python call here. */
static int32_t read_file(struct layout *layout, int descriptor, char *buffer, double *cells)
{
    if (descriptor < 0)
        return -1;
    ssize_t got;
    do {
        got = read_from_start(descriptor, buffer, BUFFER_BYTES - 1);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno;
    if (got == BUFFER_BYTES - 1)
        return -1;
    buffer[got] = '\0';
    if (parse_layout(layout, buffer, (size_t)got, cells) == SURE)
        return 0;
    for (size_t slot = 0; slot < layout->wanted; slot++)
        cells[slot] = NAN;
    return -1;
}

static Py_ssize_t read_entries(struct layouts *layouts, const struct entry *entries, Py_ssize_t count, double *cells,
                               int64_t cell_count, int32_t *status)
{
    Py_ssize_t failed = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        status[i] = -1;
        if (entry->layout >= 0 && (size_t)entry->layout < layouts->count) {
            struct layout *layout = &layouts->items[entry->layout];
            if (entry->cell >= 0 && entry->cell + (int64_t)layout->wanted <= cell_count)
                status[i] = read_file(layout, entry->descriptor, layouts->buffer, cells + entry->cell);
        }
        failed += status[i] != 0;
    }
    return failed;
}

static PyObject *read_grid(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *program_object, *values_object, *status_object;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &program_object, &values_object, &status_object))
        return NULL;
    struct layouts *layouts = PyCapsule_GetPointer(capsule, LAYOUTS);
    if (!layouts)
        return NULL;
    Py_buffer program, values, status;
    PyObject *result = NULL;
    if (PyObject_GetBuffer(program_object, &program, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(values_object, &values, PyBUF_WRITABLE) < 0)
        goto release_program;
    if (PyObject_GetBuffer(status_object, &status, PyBUF_WRITABLE) < 0)
        goto release_values;
    Py_ssize_t count = program.len / (Py_ssize_t)sizeof(struct entry);
    if (status.len < count * (Py_ssize_t)sizeof(int32_t)) {
        PyErr_SetString(PyExc_ValueError, "status is shorter than the program");
    } else if (layouts->busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread reads with these layouts");
    } else {
        Py_ssize_t failed;
        layouts->busy = 1;
        Py_BEGIN_ALLOW_THREADS
        failed = read_entries(layouts, program.buf, count, values.buf, values.len / (Py_ssize_t)sizeof(double), status.buf);
        Py_END_ALLOW_THREADS
        layouts->busy = 0;
        result = PyLong_FromSsize_t(failed);
    }
    PyBuffer_Release(&status);
release_values:
    PyBuffer_Release(&values);
release_program:
    PyBuffer_Release(&program);
    return result;
}

#if defined(__linux__) && defined(__LP64__)
/* As the kernel writes it; the C library hides its own. */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

/* The names that are numbers, as int32; -1 with errno when the folder cannot be listed. */
static Py_ssize_t list_numbers(int descriptor, char *buffer, int32_t *numbers, size_t room)
{
    size_t count = 0;
    if (lseek(descriptor, 0, SEEK_SET) < 0)
        return -1;
    for (;;) {
        long got = syscall(SYS_getdents64, descriptor, buffer, BUFFER_BYTES);
        if (got <= 0)
            return got < 0 ? -1 : (Py_ssize_t)count;
        for (long offset = 0; offset < got;) {
            const struct directory_entry *entry = (const void *)(buffer + offset);
            offset += entry->bytes;
            int64_t number = 0;
            const char *c = entry->name;
            while (*c >= '0' && *c <= '9' && number <= INT32_MAX)
                number = number * 10 + (*c++ - '0');
            if (*c == '\0' && c != entry->name && number <= INT32_MAX && count < room)
                numbers[count++] = (int32_t)number;
        }
    }
}
#endif

/* PID_MAX_LIMIT of linux/threads.h. */
#define MOST_PIDS 4194304

static PyObject *list_pids(PyObject *module, PyObject *argument)
{
    (void)module;
    long descriptor = PyLong_AsLong(argument);
    if (PyErr_Occurred())
        return NULL;
#if defined(__linux__) && defined(__LP64__)
    /* Pages that are not touched cost nothing: room for every pid there can be. */
    int32_t *numbers = malloc(MOST_PIDS * sizeof *numbers);
    char *buffer = malloc(BUFFER_BYTES);
    PyObject *result = NULL;
    if (!numbers || !buffer) {
        PyErr_NoMemory();
    } else {
        Py_ssize_t count;
        Py_BEGIN_ALLOW_THREADS
        count = list_numbers((int)descriptor, buffer, numbers, MOST_PIDS);
        Py_END_ALLOW_THREADS
        result = count < 0 ? PyErr_SetFromErrno(PyExc_OSError)
                           : PyBytes_FromStringAndSize((char *)numbers, count * (Py_ssize_t)sizeof *numbers);
    }
    free(numbers);
    free(buffer);
    return result;
#else
    (void)descriptor;
    PyErr_SetString(PyExc_NotImplementedError, "list_pids needs Linux");
    return NULL;
#endif
}

/* For the twin test: one layout, one piece of bytes, outside any file. */
static PyObject *parse_bytes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *result = NULL;
    const char *data;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Oy#", &capsule, &data, &length))
        return NULL;
    struct layouts *layouts = PyCapsule_GetPointer(capsule, LAYOUTS);
    if (!layouts || layouts->count < 1)
        return NULL;
    struct layout *layout = &layouts->items[0];
    double *out = calloc(layout->wanted + 1, sizeof *out);
    char *copy = malloc((size_t)length + 1);
    if (!out || !copy) {
        free(out);
        free(copy);
        return PyErr_NoMemory();
    }
    memcpy(copy, data, (size_t)length);
    copy[length] = '\0';
    if (parse_layout(layout, copy, (size_t)length, out) == SURE) {
        result = PyList_New((Py_ssize_t)layout->wanted);
        for (size_t slot = 0; result && slot < layout->wanted; slot++)
            PyList_SetItem(result, (Py_ssize_t)slot, PyFloat_FromDouble(out[slot]));
    } else {
        Py_INCREF(Py_None);
        result = Py_None;
    }
    free(out);
    free(copy);
    return result;
}

static PyObject *watch_heap(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyBool_FromLong(watch_arenas());
}

static PyObject *give_back_heap(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return PyLong_FromSize_t(give_back_pools());
}

static PyMethodDef METHODS[] = {
    {"make_layouts", make_layouts, METH_O, "Layouts of a segment, as a capsule."},
    {"read_grid", read_grid, METH_VARARGS, "Read and parse all files of a segment."},
    {"list_pids", list_pids, METH_O, "The numbers among the names in an open folder, as int32."},
    {"parse_bytes", parse_bytes, METH_VARARGS, "Parse bytes with the first layout; None when unsure."},
    {"watch_arenas", watch_heap, METH_NOARGS, "Remember Python's arenas from now on; False where they are not known."},
    {"give_back_pools", give_back_heap, METH_NOARGS, "Unused pages of Python's heap to the kernel; how many bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef DEFINITION = {
    PyModuleDef_HEAD_INIT, "_native", "pread and parse without the interpreter lock.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&DEFINITION);
    if (module && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(module);
    return module;
}
