/*
 * Faults at the n-th file operation below one folder: preloaded, and told what to do by Python (shim.py).
 *
 * Every call of libc that opens, reads, writes, names or looks at a file below the folder is counted, in
 * whatever library it is made. In one mode each is written to a descriptor as a line; in the other the one
 * with the wanted number meets the wanted fault. Calls on other paths go through as they are.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault { NONE, KILL, TORN_KILL, FAIL_EIO, FAIL_ENOSPC, FAIL_EINTR, SHORT, HOLD, BAD_SECTOR, FULL };

#define DESCRIPTORS 4096
#define LONGEST 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[LONGEST];
static size_t folder_length;
static long count, wanted;
static int fault, is_met;
static int record_fd = -1, ask_fd = -1, answer_fd = -1;
static char broken_path[LONGEST];
static char *path_of[DESCRIPTORS];

/* -- what Python calls ------------------------------------------------------------------------------ */

void faults_begin(const char *below, long number, int kind, int record, int ask, int answer)
{
    pthread_mutex_lock(&lock);
    snprintf(folder, sizeof folder, "%s/", below);
    folder_length = strlen(folder);
    count = 0;
    wanted = number;
    fault = kind;
    is_met = 0;
    record_fd = record;
    ask_fd = ask;
    answer_fd = answer;
    broken_path[0] = 0;
    pthread_mutex_unlock(&lock);
}

void faults_end(void)
{
    pthread_mutex_lock(&lock);
    folder_length = 0;
    fault = NONE;
    record_fd = -1;
    pthread_mutex_unlock(&lock);
}

int faults_met(void)
{
    return is_met;
}

/* -- which calls count ------------------------------------------------------------------------------ */

static int is_below(const char *path)
{
    return folder_length && path && !strncmp(path, folder, folder_length);
}

static const char *path_at(int descriptor)
{
    if (!folder_length || descriptor < 0 || descriptor >= DESCRIPTORS)
        return NULL;
    return path_of[descriptor];
}

static void remember(int descriptor, const char *path)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS && is_below(path)) {
        free(path_of[descriptor]);
        path_of[descriptor] = strdup(path);
    }
}

static void forget(int descriptor)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS && path_of[descriptor]) {
        free(path_of[descriptor]);
        path_of[descriptor] = NULL;
    }
}

static int is_one_of(const char *kind, const char *kinds)
{
    const char *found = strstr(kinds, kind);
    return found != NULL;
}

static void record(const char *kind, const char *path)
{
    char line[LONGEST + 64];
    int length = snprintf(line, sizeof line, "%ld %s %s\n", count, kind, path + folder_length);
    syscall(SYS_write, record_fd, line, (size_t)length);
}

/* A fault that stays: all reading of the one file, or all that needs room. */
static int lasting_error(const char *kind, const char *path)
{
    if (!is_met)
        return 0;
    if (fault == BAD_SECTOR && !strcmp(path, broken_path) && is_one_of(kind, "read"))
        return EIO;
    if (fault == FULL && is_one_of(kind, "create write mkdir truncate"))
        return ENOSPC;
    return 0;
}

static int error_of(int kind)
{
    return kind == FAIL_EIO ? EIO : kind == FAIL_ENOSPC ? ENOSPC : kind == FAIL_EINTR ? EINTR : 0;
}

static void hold(void)
{
    char byte = 'h';
    syscall(SYS_write, ask_fd, &byte, 1);
    syscall(SYS_read, answer_fd, &byte, 1);
}

/* Before each call: 0 to go on, else the error. `length` (may be NULL) is cut where the fault is a short one. */
static int step(const char *kind, const char *path, size_t *length)
{
    int error = 0;
    pthread_mutex_lock(&lock);
    count++;
    if (record_fd >= 0)
        record(kind, path);
    error = lasting_error(kind, path);
    if (fault && count == wanted) {
        is_met = 1;
        if (fault == KILL || (fault == TORN_KILL && !length))
            syscall(SYS_kill, getpid(), SIGKILL);
        if (fault == HOLD)
            hold();
        if ((fault == SHORT || fault == TORN_KILL) && length && *length > 1)
            *length /= 2;
        if (fault == BAD_SECTOR)
            snprintf(broken_path, sizeof broken_path, "%s", path);
        error = error_of(fault);
        if (!error)
            error = lasting_error(kind, path);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static void die_if_torn(void)
{
    if (fault == TORN_KILL && is_met)
        syscall(SYS_kill, getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_AS(value, error) do { errno = (error); return (value); } while (0)
#define STEP_PATH(kind, path, value)                                                                      \
    do {                                                                                                   \
        int error_ = is_below(path) ? step(kind, path, NULL) : 0;                                          \
        if (error_)                                                                                        \
            FAIL_AS(value, error_);                                                                        \
    } while (0)
#define STEP_AT(kind, descriptor, value, length)                                                           \
    do {                                                                                                   \
        const char *path_ = path_at(descriptor);                                                           \
        int error_ = path_ ? step(kind, path_, length) : 0;                                                \
        if (error_)                                                                                        \
            FAIL_AS(value, error_);                                                                        \
    } while (0)

/* -- opening ---------------------------------------------------------------------------------------- */

static int makes_file(const char *path, int flags)
{
    if (!(flags & O_CREAT) || !is_below(path))
        return 0;
    return (flags & O_TRUNC) || syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    STEP_PATH(makes_file(path, flags) ? "create" : "open", path, -1);
    int descriptor = (int)syscall(SYS_openat, at, path, flags, mode);
    remember(descriptor, path);
    return descriptor;
}

#define MODE_OF(flags, mode)                                                                               \
    mode_t mode = 0;                                                                                       \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                 \
        va_list rest;                                                                                      \
        va_start(rest, flags);                                                                             \
        mode = va_arg(rest, mode_t);                                                                       \
        va_end(rest);                                                                                      \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(at, path, flags, mode);
}

int close(int descriptor)
{
    const char *path = path_at(descriptor);
    int error = path ? step("close", path, NULL) : 0;
    forget(descriptor);
    int result = (int)syscall(SYS_close, descriptor);
    /* As Linux does: the descriptor is gone, whatever close says. */
    if (error)
        FAIL_AS(-1, error);
    return result;
}

/* -- content ---------------------------------------------------------------------------------------- */

ssize_t read(int descriptor, void *buffer, size_t length)
{
    STEP_AT("read", descriptor, -1, &length);
    return syscall(SYS_read, descriptor, buffer, length);
}

ssize_t pread(int descriptor, void *buffer, size_t length, off_t offset)
{
    STEP_AT("read", descriptor, -1, &length);
    return syscall(SYS_pread64, descriptor, buffer, length, offset);
}

ssize_t pread64(int descriptor, void *buffer, size_t length, off_t offset)
{
    return pread(descriptor, buffer, length, offset);
}

ssize_t write(int descriptor, const void *buffer, size_t length)
{
    STEP_AT("write", descriptor, -1, &length);
    ssize_t written = syscall(SYS_write, descriptor, buffer, length);
    if (path_at(descriptor))
        die_if_torn();
    return written;
}

/* A page that cannot be read is a bus error for whoever has it mapped: so is one beyond a file's end. */
static int is_broken(int descriptor)
{
    const char *path = path_at(descriptor);
    return fault == BAD_SECTOR && is_met && path && !strcmp(path, broken_path);
}

void *mmap(void *start, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    STEP_AT("map", descriptor, MAP_FAILED, NULL);
    if (is_broken(descriptor))
        descriptor = memfd_create("empty", 0);
    return (void *)syscall(SYS_mmap, start, length, protection, flags, descriptor, offset);
}

void *mmap64(void *start, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    return mmap(start, length, protection, flags, descriptor, offset);
}

int fsync(int descriptor)
{
    STEP_AT("sync", descriptor, -1, NULL);
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    STEP_AT("sync", descriptor, -1, NULL);
    return (int)syscall(SYS_fdatasync, descriptor);
}

int ftruncate(int descriptor, off_t length)
{
    STEP_AT("truncate", descriptor, -1, NULL);
    return (int)syscall(SYS_ftruncate, descriptor, length);
}

int ftruncate64(int descriptor, off_t length)
{
    return ftruncate(descriptor, length);
}

int flock(int descriptor, int what)
{
    STEP_AT("lock", descriptor, -1, NULL);
    return (int)syscall(SYS_flock, descriptor, what);
}

/* -- names ------------------------------------------------------------------------------------------ */

int rename(const char *path, const char *target)
{
    STEP_PATH("rename", path, -1);
    return (int)syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, target);
}

int unlink(const char *path)
{
    STEP_PATH("remove", path, -1);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    STEP_PATH("rmdir", path, -1);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char *path, mode_t mode)
{
    STEP_PATH("mkdir", path, -1);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

/* -- looking ---------------------------------------------------------------------------------------- */

static int look(int at, const char *path, void *buffer, int flags)
{
    return (int)syscall(SYS_newfstatat, at, path, buffer, flags);
}

static int look_at_path(const char *path, void *buffer, int flags)
{
    STEP_PATH("stat", path, -1);
    return look(AT_FDCWD, path, buffer, flags);
}

static int look_at_descriptor(int descriptor, void *buffer)
{
    STEP_AT("stat", descriptor, -1, NULL);
    return look(descriptor, "", buffer, AT_EMPTY_PATH);
}

int stat(const char *path, struct stat *buffer) { return look_at_path(path, buffer, 0); }
int stat64(const char *path, struct stat64 *buffer) { return look_at_path(path, buffer, 0); }
int lstat(const char *path, struct stat *buffer) { return look_at_path(path, buffer, AT_SYMLINK_NOFOLLOW); }
int lstat64(const char *path, struct stat64 *buffer) { return look_at_path(path, buffer, AT_SYMLINK_NOFOLLOW); }
int fstat(int descriptor, struct stat *buffer) { return look_at_descriptor(descriptor, buffer); }
int fstat64(int descriptor, struct stat64 *buffer) { return look_at_descriptor(descriptor, buffer); }

/* What programs call that were built with an older libc. */
int __xstat(int v, const char *path, struct stat *buffer) { (void)v; return look_at_path(path, buffer, 0); }
int __xstat64(int v, const char *path, struct stat64 *buffer) { (void)v; return look_at_path(path, buffer, 0); }
int __lxstat(int v, const char *path, struct stat *buffer) { (void)v; return look_at_path(path, buffer, AT_SYMLINK_NOFOLLOW); }
int __lxstat64(int v, const char *path, struct stat64 *buffer) { (void)v; return look_at_path(path, buffer, AT_SYMLINK_NOFOLLOW); }
int __fxstat(int v, int descriptor, struct stat *buffer) { (void)v; return look_at_descriptor(descriptor, buffer); }
int __fxstat64(int v, int descriptor, struct stat64 *buffer) { (void)v; return look_at_descriptor(descriptor, buffer); }

int fstatat(int at, const char *path, struct stat *buffer, int flags)
{
    STEP_PATH("stat", path, -1);
    return look(at, path, buffer, flags);
}

int fstatat64(int at, const char *path, struct stat64 *buffer, int flags)
{
    STEP_PATH("stat", path, -1);
    return look(at, path, buffer, flags);
}

int statvfs(const char *path, struct statvfs *buffer)
{
    STEP_PATH("statvfs", path, -1);
    return REAL(statvfs)(path, buffer);
}

int statvfs64(const char *path, struct statvfs64 *buffer)
{
    return statvfs(path, (struct statvfs *)buffer);
}

DIR *opendir(const char *path)
{
    STEP_PATH("list", path, NULL);
    DIR *found = REAL(opendir)(path);
    if (found)
        remember(dirfd(found), path);
    return found;
}

/* Only the first: the kernel is asked for many names at once. */
static int is_first(DIR *open_folder)
{
    return path_at(dirfd(open_folder)) && telldir(open_folder) == 0;
}

struct dirent64 *readdir64(DIR *open_folder)
{
    if (is_first(open_folder))
        STEP_AT("list", dirfd(open_folder), NULL, NULL);
    return REAL(readdir64)(open_folder);
}

struct dirent *readdir(DIR *open_folder)
{
    if (is_first(open_folder))
        STEP_AT("list", dirfd(open_folder), NULL, NULL);
    return REAL(readdir)(open_folder);
}

int closedir(DIR *open_folder)
{
    forget(dirfd(open_folder));
    return REAL(closedir)(open_folder);
}
