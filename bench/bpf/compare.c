/*
 * The files of many cgroups against one read of a BPF iterator: cost and values.
 *
 *   compare CGROUPS ROUNDS      as the first process of a virtual machine, or as root where cgroup v2 is at
 *                               /sys/fs/cgroup or /sys/fs/cgroup/unified
 *
 * Files are kept open and parsed by the agent's own parsers. CPU time of the reading thread. The processes of the
 * cgroups work once a second; both readers take turns, each after a pause.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../native/parse.h"
#include "cgroup_iter.skel.h"
#include "cgroup_numbers.h"

enum { CPU_STAT, CPU_PRESSURE, MEMORY_CURRENT, MEMORY_STAT, FILES };
enum { MOST_CELLS = 16, MOST_LINES = 256, BUFFER_BYTES = 65536 };

static const char *const NAMES[FILES] = {"cpu.stat", "cpu.pressure", "memory.current", "memory.stat"};
static const char *const CPU_KEYS[] = {"usage_usec", "user_usec", "system_usec"};
static const char *const MEMORY_KEYS[] = {"anon",         "file",          "shmem",       "file_mapped", "file_dirty",
                                          "inactive_file", "active_file", "pgfault", "pgmajfault"};

struct group {
    char path[160];
    unsigned long long inode;
    int files[FILES];
    double cells[FILES][MOST_CELLS];
    struct cgroup_numbers row;
    pid_t worker;
};

static char buffer[BUFFER_BYTES];
static struct layout layouts[FILES];

static void die(const char *what)
{
    printf("failed: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    if (getpid() == 1)
        reboot(RB_POWER_OFF);
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void pause_seconds(double seconds)
{
    struct timespec wait = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&wait, &wait) && errno == EINTR)
        ;
}

static int write_text(const char *path, const char *text)
{
    int descriptor = open(path, O_WRONLY);
    if (descriptor < 0)
        return -1;
    ssize_t done = write(descriptor, text, strlen(text));
    close(descriptor);
    return done < 0 ? -1 : 0;
}

static void set_keys(struct layout *layout, const char *const *names, size_t count)
{
    layout->kind = KEY_VALUES;
    layout->wanted = count;
    layout->keys = calloc(count + 1, sizeof *layout->keys);
    for (size_t slot = 0; slot < count; slot++)
        layout->keys[slot] = (struct key){names[slot], strlen(names[slot])};
    layout->lines = calloc(MOST_LINES, sizeof *layout->lines);
    layout->line_room = MOST_LINES;
    layout->memory = malloc(BUFFER_BYTES);
    layout->memory_room = BUFFER_BYTES;
}

static void set_layouts(void)
{
    static int32_t places[] = {4, 9};
    set_keys(&layouts[CPU_STAT], CPU_KEYS, sizeof CPU_KEYS / sizeof *CPU_KEYS);
    set_keys(&layouts[MEMORY_STAT], MEMORY_KEYS, sizeof MEMORY_KEYS / sizeof *MEMORY_KEYS);
    layouts[CPU_PRESSURE] = (struct layout){.kind = PRESSURE, .wanted = 2, .places = places};
    layouts[MEMORY_CURRENT] = (struct layout){.kind = NUMBER, .wanted = 1, .unlimited_from = NAN};
}

/* A process that touches a megabyte and works a little once a second. */
static void work(const char *procs)
{
    char *held = malloc(1 << 20);
    if (!held || write_text(procs, "0") < 0)
        _exit(1);
    memset(held, 1, 1 << 20);
    for (volatile unsigned turn = 0;; turn++) {
        for (volatile int step = 0; step < 20000; step++)
            held[step] = (char)(step + (int)turn);
        pause_seconds(1);
    }
}

static void make_group(struct group *group, const char *top, int number)
{
    char path[256];
    struct stat found;
    snprintf(group->path, sizeof group->path, "%s/c%d", top, number);
    if ((mkdir(group->path, 0755) && errno != EEXIST) || stat(group->path, &found))
        die(group->path);
    group->inode = found.st_ino;
    snprintf(path, sizeof path, "%s/cgroup.procs", group->path);
    group->worker = fork();
    if (group->worker == 0)
        work(path);
    for (int file = 0; file < FILES; file++) {
        snprintf(path, sizeof path, "%s/%s", group->path, NAMES[file]);
        group->files[file] = open(path, O_RDONLY | O_CLOEXEC);
    }
}

/* What the agent's native reader does, file after file of one kind. */
static void read_files(struct group *groups, int count)
{
    for (int file = 0; file < FILES; file++)
        for (int number = 0; number < count; number++) {
            int descriptor = groups[number].files[file];
            if (descriptor < 0)
                continue;
            ssize_t got = pread(descriptor, buffer, BUFFER_BYTES - 1, 0);
            if (got < 0)
                die(NAMES[file]);
            buffer[got] = '\0';
            if (parse_layout(&layouts[file], buffer, (size_t)got, groups[number].cells[file]) != SURE)
                die("parse");
        }
}

static int by_inode(const void *one, const void *other)
{
    unsigned long long a = ((const struct group *)one)->inode, b = ((const struct group *)other)->inode;
    return a < b ? -1 : a > b;
}

/* One pass of the iterator: it ends without output; rows find their group by inode. */
static int read_iterator(struct bpf_link *link, const struct cgroup_numbers *rows, const unsigned *filled,
                         struct group *groups, int count)
{
    int descriptor = bpf_iter_create(bpf_link__fd(link)), found = 0;
    if (descriptor < 0)
        die("bpf_iter_create");
    while (read(descriptor, buffer, BUFFER_BYTES) < 0)
        if (errno != EAGAIN && errno != EINTR)
            die("read of the iterator");
    close(descriptor);
    for (unsigned place = 0; place < *filled; place++) {
        struct group wanted = {.inode = rows[place].inode};
        struct group *group = bsearch(&wanted, groups, (size_t)count, sizeof *groups, by_inode);
        if (group) {
            group->row = rows[place];
            found++;
        }
    }
    return found;
}

static int by_value(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void compare_values(const char *when, struct group *groups, int count)
{
    int usage = 0, user = 0, current = 0, parts[PARTS] = {0}, faults = 0, pressure = 0, has_memory = groups[0].files[MEMORY_STAT] >= 0;
    double behind_us = 0;
    for (int number = 0; number < count; number++) {
        struct group *group = &groups[number];
        usage += (double)(group->row.usage_ns / 1000) == group->cells[CPU_STAT][0];
        user += (double)(group->row.user_ns / 1000) == group->cells[CPU_STAT][1];
        double late = group->cells[CPU_PRESSURE][0] - (double)(group->row.cpu_some_ns / 1000);
        pressure += late == 0;
        behind_us = late > behind_us ? late : behind_us;
        current += (double)group->row.current * 4096 == group->cells[MEMORY_CURRENT][0];
        faults += (double)group->row.faults == group->cells[MEMORY_STAT][PARTS];
        for (int part = 0; part < PARTS; part++)
            parts[part] += (double)group->row.parts[part] * 4096 == group->cells[MEMORY_STAT][part];
    }
    printf("equal of %d, %s: usage %d, user %d, cpu.pressure %d (at most %.0f us behind)", count, when, usage, user, pressure,
           behind_us);
    if (has_memory) {
        printf(", memory.current %d, memory.stat", current);
        for (int part = 0; part < PARTS; part++)
            printf(" %s %d", MEMORY_KEYS[part], parts[part]);
        printf(" pgfault %d", faults);
    }
    printf("\n");
}

static const char *prepare(void)
{
    if (getpid() == 1) {
        mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755);
        mount("proc", "/proc", "proc", 0, NULL);
        mount("sysfs", "/sys", "sysfs", 0, NULL);
        mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
    }
    struct rlimit files = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &files);
    const char *root = access("/sys/fs/cgroup/cgroup.procs", F_OK) ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
    static char top[128], control[192];
    snprintf(control, sizeof control, "%s/cgroup.subtree_control", root);
    write_text(control, "+cpu +memory");
    snprintf(top, sizeof top, "%s/bpf-bench", root);
    if (mkdir(top, 0755) && errno != EEXIST)
        die(top);
    snprintf(control, sizeof control, "%s/cgroup.subtree_control", top);
    write_text(control, "+cpu +memory");
    return top;
}

static void freeze(const char *top, const char *word)
{
    char path[192];
    snprintf(path, sizeof path, "%s/cgroup.freeze", top);
    write_text(path, word);
}

int main(int count_arguments, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int count = count_arguments > 1 ? atoi(arguments[1]) : 1000;
    int rounds = count_arguments > 2 ? atoi(arguments[2]) : 15;
    const char *top = prepare();
    struct group *groups = calloc((size_t)count, sizeof *groups);
    double *files = calloc((size_t)rounds, sizeof *files), *iterator = calloc((size_t)rounds, sizeof *iterator);
    set_layouts();
    for (int number = 0; number < count; number++)
        make_group(&groups[number], top, number);
    qsort(groups, (size_t)count, sizeof *groups, by_inode);

    struct cgroup_iter_bpf *program = cgroup_iter_bpf__open_and_load();
    if (!program)
        die("loading the program");
    union bpf_iter_link_info about = {
        .cgroup = {.order = BPF_CGROUP_ITER_DESCENDANTS_PRE, .cgroup_fd = (unsigned)open(top, O_RDONLY)}};
    LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &about, .link_info_len = sizeof about);
    struct bpf_link *link = bpf_program__attach_iter(program->progs.read_cgroups, &options);
    if (!link)
        die("attaching the iterator");

    size_t bytes = sizeof(struct cgroup_numbers) * MOST_GROUPS;
    const struct cgroup_numbers *rows =
        mmap(NULL, bytes, PROT_READ, MAP_SHARED, bpf_map__fd(program->maps.rows), 0);
    if (rows == MAP_FAILED)
        die("mapping the rows");
    pause_seconds(3);
    int found = 0;
    for (int round = 0; round < rounds; round++) {
        double before = cpu_seconds();
        read_files(groups, count);
        files[round] = cpu_seconds() - before;
        pause_seconds(1);
        before = cpu_seconds();
        found = read_iterator(link, rows, &program->bss->count, groups, count);
        iterator[round] = cpu_seconds() - before;
        pause_seconds(1);
    }
    double by_files = median(files, rounds), by_iterator = median(iterator, rounds);
    printf("%d cgroups, %d found by the iterator, %d rounds\n", count, found, rounds);
    printf("files     %8.3f ms, median (least %.3f)\n", by_files * 1e3, files[0] * 1e3);
    printf("iterator  %8.3f ms, median (least %.3f)\n", by_iterator * 1e3, iterator[0] * 1e3);
    printf("files / iterator  %.1f\n", by_files / by_iterator);
    read_iterator(link, rows, &program->bss->count, groups, count);
    read_files(groups, count);
    compare_values("while they work", groups, count);
    freeze(top, "1");
    pause_seconds(4);
    read_iterator(link, rows, &program->bss->count, groups, count);
    read_files(groups, count);
    compare_values("frozen", groups, count);
    freeze(top, "0");
    for (int number = 0; number < count; number++)
        kill(groups[number].worker, SIGKILL);
    while (wait(NULL) > 0)
        ;
    for (int number = 0; number < count; number++)
        rmdir(groups[number].path);
    rmdir(top);
    printf("result 0\n");
    fflush(stdout);
    if (getpid() == 1)
        reboot(RB_POWER_OFF);
    return 0;
}
