/* What the iterator writes for one cgroup; shared by the program in the kernel and the one that reads it. */
#ifndef CGROUP_NUMBERS_H
#define CGROUP_NUMBERS_H

enum { MOST_GROUPS = 16384 };
enum { ANON, FILE_PAGES, SHMEM, FILE_MAPPED, FILE_DIRTY, INACTIVE_FILE, ACTIVE_FILE, PARTS };

struct cgroup_numbers {
    unsigned long long inode;
    unsigned long long usage_ns;
    unsigned long long user_ns;
    unsigned long long system_ns;
    /* Pages. */
    long long current;
    long long parts[PARTS];
    unsigned long long faults;
    unsigned long long major_faults;
    /* As of the kernel's last average: up to two seconds old. */
    unsigned long long cpu_some_ns;
};

#endif
