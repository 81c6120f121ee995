"""
How many free devices of a node cannot be used by pods that want several at once.

A pod gets its devices on one node. Eight nodes with one free GPU each are no
place for a pod that wants eight. For every usual size (1, 2, 4, 8, 16) the free
devices of a node that are too few for it are stranded:

    stranded(7) = 7 (for 8) + 7 (for 16) = 14      stranded(8) = 8 (for 16)

A pod is put where the sum grows least. So it fills a node that was begun, keeps
groups of four and eight together, and takes an empty node last.
"""

# What trainings ask for; a size that no node has adds the same to every node.
SIZES = (1, 2, 4, 8, 16)


def count_stranded(free: int) -> int:
    return sum(free for size in SIZES if 0 < free < size)


def count_change(free: int, wanted: int) -> int:
    """
    By how much more is stranded once `wanted` of `free` are taken; never below 0.

    All of `wanted` may have been stranded for every size: that is where 0 begins.
    """
    return count_stranded(free - wanted) - count_stranded(free) + wanted * len(SIZES)
