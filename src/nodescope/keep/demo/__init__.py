"""
A realistic archive that never happened: for a first look, for studies, for benches.

A node runs ordinary services, and six that have a story: a leak that ends in
an OOM kill, a quota that is too small, a cron job, a deploy that costs more, a
crash loop, a GPU job. What was planted, where and when, is in truth.json.

The kernel's own invariants hold, in every sample:

    usage = user + system      memory.current <= memory.max
    counters never fall while a container lives
    an OOM kill ends the container, and what starts after it has a new id

Everything follows from the seed and the end; the same command makes the same
bytes of data.
"""
