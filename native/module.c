/*
 * The native reader: pread and parse of a whole segment without the interpreter lock.
 *
 *   make_layouts(list of (kind, keys, places, unlimited_from)) -> capsule
 *   read_grid(capsule, program, values, status) -> number of files that were not read
 *
 * program   one entry a file: int32 descriptor, int32 layout, int64 first cell, see struct entry
 * values    writable float64 cells, NaN where nothing will be written
 * status    writable int32, one a file: 0 read, > 0 errno, -1 the Python reader must decide
 *
 * Limited API of Python 3.11: one build serves every later version.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parse.h"

/* Larger files (a machine with thousands of interrupts) go to the Python reader. */
#define BUFFER_BYTES 65536
/* Lines remembered at the most; memory.stat has some 50, vmstat some 200. */
#define MOST_LINES 4096
#define LAYOUTS "nodescope.layouts"

struct entry {
    int32_t descriptor;
    int32_t layout;
    int64_t cell;
};

struct layouts {
    size_t count;
    struct layout *items;
};

static void free_layouts(struct layouts *layouts)
{
    if (!layouts)
        return;
    for (size_t i = 0; i < layouts->count; i++) {
        struct layout *layout = &layouts->items[i];
        for (size_t slot = 0; layout->keys && slot < layout->wanted; slot++)
            free((char *)layout->keys[slot].text);
        free(layout->keys);
        free(layout->places);
        free(layout->lines);
        free(layout->memory);
    }
    free(layouts->items);
    free(layouts);
}

static void destroy_capsule(PyObject *capsule)
{
    free_layouts(PyCapsule_GetPointer(capsule, LAYOUTS));
}

/* keys: a tuple of bytes; places: a tuple of int; either may be empty. */
static int fill_layout(struct layout *layout, PyObject *keys, PyObject *places)
{
    Py_ssize_t key_count = PyTuple_Size(keys), place_count = PyTuple_Size(places);
    if (key_count < 0 || place_count < 0)
        return -1;
    layout->wanted = (size_t)(layout->kind == NUMBER ? 1 : key_count ? key_count : place_count);
    layout->keys = calloc(layout->wanted + 1, sizeof *layout->keys);
    layout->places = calloc(layout->wanted + 1, sizeof *layout->places);
    layout->line_room = MOST_LINES;
    layout->lines = calloc(MOST_LINES, sizeof *layout->lines);
    layout->memory_room = BUFFER_BYTES;
    layout->memory = malloc(BUFFER_BYTES);
    if (!layout->keys || !layout->places || !layout->lines || !layout->memory) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t slot = 0; slot < key_count; slot++) {
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
    for (Py_ssize_t slot = 0; slot < place_count; slot++) {
        long place = PyLong_AsLong(PyTuple_GetItem(places, slot));
        if (PyErr_Occurred())
            return -1;
        layout->places[slot] = (int32_t)place;
    }
    return 0;
}

static PyObject *make_layouts(PyObject *module, PyObject *list)
{
    (void)module;
    Py_ssize_t count = PyList_Size(list);
    if (count < 0)
        return NULL;
    struct layouts *layouts = calloc(1, sizeof *layouts);
    if (layouts)
        layouts->items = calloc((size_t)count + 1, sizeof *layouts->items);
    if (!layouts || !layouts->items) {
        free(layouts);
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
        layout->kind = (enum kind)kind;
        layouts->count = (size_t)i + 1;
        if (fill_layout(layout, keys, places) < 0) {
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
        got = pread(descriptor, buffer, BUFFER_BYTES - 1, 0);
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
    char *buffer = malloc(BUFFER_BYTES);
    Py_ssize_t failed = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        status[i] = -1;
        if (buffer && entry->layout >= 0 && (size_t)entry->layout < layouts->count) {
            struct layout *layout = &layouts->items[entry->layout];
            if (entry->cell >= 0 && entry->cell + (int64_t)layout->wanted <= cell_count)
                status[i] = read_file(layout, entry->descriptor, buffer, cells + entry->cell);
        }
        failed += status[i] != 0;
    }
    free(buffer);
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
    } else {
        Py_ssize_t failed;
        Py_BEGIN_ALLOW_THREADS
        failed = read_entries(layouts, program.buf, count, values.buf, values.len / (Py_ssize_t)sizeof(double), status.buf);
        Py_END_ALLOW_THREADS
        result = PyLong_FromSsize_t(failed);
    }
    PyBuffer_Release(&status);
release_values:
    PyBuffer_Release(&values);
release_program:
    PyBuffer_Release(&program);
    return result;
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

static PyMethodDef METHODS[] = {
    {"make_layouts", make_layouts, METH_O, "Layouts of a segment, as a capsule."},
    {"read_grid", read_grid, METH_VARARGS, "Read and parse all files of a segment."},
    {"parse_bytes", parse_bytes, METH_VARARGS, "Parse bytes with the first layout; None when unsure."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef DEFINITION = {
    PyModuleDef_HEAD_INIT, "_native", "pread and parse without the interpreter lock.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&DEFINITION); }
