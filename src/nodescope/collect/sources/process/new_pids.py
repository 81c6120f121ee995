"""
Pids given out since the last look, without listing /proc.

    0.20 0.18 0.12 1/80 11206        /proc/loadavg; the last is the newest pid

The kernel gives pids out in ascending order, to threads as well. So whoever
was born since the last look has a number between the two newest pids: a few
of them are asked for one by one, which costs less than listing everybody. A
process gets its pid a moment before it can be seen: who was not there yet is
asked for once more at the next look.
"""

import errno
import os
import sys

from nodescope.collect.files.roots import NodeRoot

PATH = "proc/loadavg"
# Asking for one costs about as much as listing two; a node has some hundreds.
MOST = 64


class NewPids:
    """Answers from where it left off; None when only a listing can tell."""

    def __init__(self, root: NodeRoot) -> None:
        self._newest = -1
        self._unseen: list[int] = []
        self._descriptor = root.open(PATH) if tells_of_ours(root) else -1

    def read(self) -> list[int] | None:
        """Processes that may be new; an unchanged node gives an empty list."""
        if self._descriptor < 0:
            return None
        before, self._newest = self._newest, self._read_newest()
        unseen, self._unseen = self._unseen, []
        # Past the largest pid the kernel starts again from the smallest free one.
        if before < 0 or not before <= self._newest <= before + MOST:
            return None
        asked = [*unseen, *range(before + 1, self._newest + 1)]
        try:
            return [pid for pid in asked if self._leads(pid, before)]
        except OSError:
            # A sandbox forbids the question, or there are no descriptors left.
            return None

    def _read_newest(self) -> int:
        try:
            return int(os.pread(self._descriptor, 128, 0).split()[-1])
        except (OSError, ValueError, IndexError):
            return -1

    def _leads(self, pid: int, before: int) -> bool:
        """Whether it is a process and not one's thread."""
        if sys.platform != "linux":
            return False
        try:
            os.close(os.pidfd_open(pid))
        except ProcessLookupError:
            # Not yet, or no more: a second look tells.
            if pid > before:
                self._unseen.append(pid)
            return False
        except OSError as error:
            # A thread; ENOENT since Linux 6.9.
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return False
            raise
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def tells_of_ours(root: NodeRoot) -> bool:
    """
    Whether loadavg speaks of the pids that this root's /proc lists.

    It tells of the reader's own pid namespace; in a container without the
    host's, a host's /proc that is mounted somewhere lists others.
    """
    if sys.platform != "linux" or root.is_fixture or not root.exists(PATH):
        return False
    status = root.read_text("proc/self/status") or ""
    # One number for every namespace from that of /proc down to ours.
    numbers = next((line for line in status.split("\n") if line.startswith("NSpid:")), "").split()[1:]
    return numbers == [str(os.getpid())]
