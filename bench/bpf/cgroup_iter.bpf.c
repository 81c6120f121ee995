/*
 * A BPF iterator over cgroups: the numbers of all containers as one binary read.
 *
 * They go to a mapped array, not to the iterator's own output: the kernel gives that one buffer
 * of 32 KiB (256 cgroups), and an iterator over cgroups that is read on fails with EOPNOTSUPP.
 *
 * Measured by bench/bpf/run against the files; decision 0706 has the figures.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "cgroup_numbers.h"

char LICENSE[] SEC("license") = "GPL";

#ifdef FLUSH_BY_CSS
/* Since Linux 6.16, each controller for itself. */
extern void css_rstat_flush(struct cgroup_subsys_state *css) __ksym;
#else
extern void cgroup_rstat_flush(struct cgroup *cgroup) __ksym;
#endif

static __always_inline void read_memory(struct cgroup *cgroup, struct cgroup_numbers *row)
{
    int place = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    struct cgroup_subsys_state *css = BPF_CORE_READ(cgroup, subsys[place]);
    if (!css)
        return;
    /* The css is the first member. */
    struct mem_cgroup *memcg = (struct mem_cgroup *)css;
    struct memcg_vmstats *stats = BPF_CORE_READ(memcg, vmstats);
    row->current = BPF_CORE_READ(memcg, memory.usage.counter);
#define PART(slot, item) row->parts[slot] = BPF_CORE_READ(stats, state[bpf_core_enum_value(enum node_stat_item, item)])
    PART(ANON, NR_ANON_MAPPED);
    PART(FILE_PAGES, NR_FILE_PAGES);
    PART(SHMEM, NR_SHMEM);
    PART(FILE_MAPPED, NR_FILE_MAPPED);
    PART(FILE_DIRTY, NR_FILE_DIRTY);
    PART(INACTIVE_FILE, NR_INACTIVE_FILE);
    PART(ACTIVE_FILE, NR_ACTIVE_FILE);
    /* Places in a table of mm/memcontrol.c that changes with versions, and that no type tells. */
    row->faults = BPF_CORE_READ(stats, events[6]);
    row->major_faults = BPF_CORE_READ(stats, events[7]);
}

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, MOST_GROUPS);
    __type(key, __u32);
    __type(value, struct cgroup_numbers);
} rows SEC(".maps");

__u32 count;

SEC("iter.s/cgroup")
int read_cgroups(struct bpf_iter__cgroup *context)
{
    struct cgroup *cgroup = context->cgroup;
    if (!cgroup)
        return 0;
    /* The topmost comes first, and is flushed with all that is below it. */
    if (context->meta->seq_num == 0) {
#ifdef FLUSH_BY_CSS
        css_rstat_flush(&cgroup->self);
#else
        cgroup_rstat_flush(cgroup);
#endif
    }
    __u32 place = context->meta->seq_num;
    struct cgroup_numbers *slot = bpf_map_lookup_elem(&rows, &place);
    if (!slot)
        return 1;
    struct cgroup_numbers row = {};
    row.inode = BPF_CORE_READ(cgroup, kn, id);
    row.usage_ns = BPF_CORE_READ(cgroup, bstat.cputime.sum_exec_runtime);
    row.user_ns = BPF_CORE_READ(cgroup, bstat.cputime.utime);
    row.system_ns = BPF_CORE_READ(cgroup, bstat.cputime.stime);
    /* Of the averages' twelve totals the third is the time in which some task waited for a core. */
    row.cpu_some_ns = BPF_CORE_READ(cgroup, psi, total[bpf_core_enum_value(enum psi_states, PSI_CPU_SOME)]);
#ifndef FLUSH_BY_CSS
    read_memory(cgroup, &row);
#endif
    *slot = row;
    count = place + 1;
    return 0;
}
