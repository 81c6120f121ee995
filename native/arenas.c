/*
 * Unused pages of Python's own heap, given back to the kernel (decision 1127).
 *
 * Python keeps objects of up to 512 bytes in pools of 16 KiB, 64 of which are an arena of
 * 1 MiB. It gives back whole arenas only: one object that stays holds 63 unused pools.
 * Here the pages of an unused pool are given back, all but the one with its header:
 *
 *   arena   | pool | pool | pool | ...                       from the arena allocator, which C-API lets one replace
 *   pool    | header, 48 bytes | blocks of one size | ...    unused when no block of it is
 *
 * A pool that was used before remembers its unused blocks in the blocks themselves. Its size
 * class is therefore set to what Python writes into a pool that was never used: then
 * it lays the blocks out anew.
 *
 * The header is CPython's own affair (Include/internal/pycore_obmalloc.h) and the same in 3.11,
 * 3.12 and 3.13; other versions are left alone. So is an arena in which a single header is
 * not as it has to be.
 */
#define _GNU_SOURCE
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>

#include "arenas.h"

#if defined(__linux__) && defined(__LP64__)
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES 1048576
#define POOL_BYTES 16384
#define BLOCK_STEP 16
#define SIZE_CLASSES 32
/* DUMMY_SIZE_IDX: the size class of a pool that has none yet. */
#define NO_CLASS 0xffff
#define FIRST_VERSION 0x030B0000
#define END_VERSION 0x030E0000

struct pool {
    /* Blocks in use. */
    unsigned int count;
    void *first_free;
    struct pool *next;
    struct pool *previous;
    unsigned int arena;
    unsigned int size_class;
    /* Where blocks begin that were never used, and the last place where one may. */
    unsigned int next_offset;
    unsigned int last_offset;
};

/* PyObjectArenaAllocator: public, but not part of the limited API. */
struct arena_allocator {
    void *context;
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *arena, size_t bytes);
};

extern void PyObject_GetArenaAllocator(struct arena_allocator *) __attribute__((weak));
extern void PyObject_SetArenaAllocator(struct arena_allocator *) __attribute__((weak));

/* The interpreter lock guards all of these. */
static struct arena_allocator python;
static int watched;
static char **arenas;
static size_t arena_count, arena_room;

/* An arena for which there is no room in the list is only not looked at. */
static void remember(char *arena)
{
    if (arena_count == arena_room) {
        size_t room = arena_room ? 2 * arena_room : 64;
        char **larger = realloc(arenas, room * sizeof *larger);
        if (!larger)
            return;
        arenas = larger;
        arena_room = room;
    }
    arenas[arena_count++] = arena;
}

static void forget(const char *arena)
{
    for (size_t i = 0; i < arena_count; i++) {
        if (arenas[i] == arena) {
            arenas[i] = arenas[--arena_count];
            return;
        }
    }
}

static void *allocate(void *context, size_t bytes)
{
    char *arena = python.allocate(context, bytes);
    if (arena && bytes == ARENA_BYTES)
        remember(arena);
    return arena;
}

static void release(void *context, void *arena, size_t bytes)
{
    forget(arena);
    python.release(context, arena, bytes);
}

int watch_arenas(void)
{
    if (watched)
        return 1;
    /* Py_Version itself came with 3.11. */
    unsigned long version = Py_Version;
    if (!PyObject_GetArenaAllocator || !PyObject_SetArenaAllocator || version < FIRST_VERSION || version >= END_VERSION)
        return 0;
    PyObject_GetArenaAllocator(&python);
    struct arena_allocator ours = {python.context, allocate, release};
    PyObject_SetArenaAllocator(&ours);
    watched = 1;
    return 1;
}

/* Nothing was ever in it: the kernel has not even given its page. */
static int is_untouched(const struct pool *pool)
{
    return !pool->count && !pool->last_offset && !pool->size_class;
}

static int is_sound(const struct pool *pool, unsigned int arena)
{
    if (pool->arena != arena)
        return 0;
    if (pool->size_class == NO_CLASS)
        return !pool->count;
    if (pool->size_class >= SIZE_CLASSES)
        return 0;
    unsigned int bytes = (pool->size_class + 1) * BLOCK_STEP;
    return pool->last_offset == POOL_BYTES - bytes && pool->next_offset <= POOL_BYTES &&
           pool->next_offset >= sizeof *pool + bytes && pool->count <= (POOL_BYTES - sizeof *pool) / bytes;
}

/* The pools that were used so far lie in front; 0 when a header is not as it has to be. */
static size_t count_sound(char *first, size_t most)
{
    size_t count = 0;
    while (count < most && !is_untouched((struct pool *)(first + count * POOL_BYTES)))
        count++;
    for (size_t i = 0; i < count; i++) {
        if (!is_sound((struct pool *)(first + i * POOL_BYTES), ((struct pool *)first)->arena))
            return 0;
    }
    return count;
}

static size_t give_back_arena(char *arena, size_t page)
{
    /* Pools are aligned, arenas need not be. */
    char *first = (char *)(((uintptr_t)arena + POOL_BYTES - 1) & ~(uintptr_t)(POOL_BYTES - 1));
    size_t count = count_sound(first, (size_t)(arena + ARENA_BYTES - first) / POOL_BYTES), given = 0;
    for (size_t i = 0; i < count; i++) {
        struct pool *pool = (struct pool *)(first + i * POOL_BYTES);
        if (pool->count || pool->size_class == NO_CLASS)
            continue;
        pool->size_class = NO_CLASS;
        if (!madvise((char *)pool + page, POOL_BYTES - page, MADV_DONTNEED))
            given += POOL_BYTES - page;
    }
    return given;
}

size_t give_back_pools(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), given = 0;
    for (size_t i = 0; page < POOL_BYTES && i < arena_count; i++)
        given += give_back_arena(arenas[i], page);
    return given;
}

#else

int watch_arenas(void)
{
    return 0;
}

size_t give_back_pools(void)
{
    return 0;
}

#endif
