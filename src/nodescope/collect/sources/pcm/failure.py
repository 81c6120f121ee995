"""
Why pcm gave no data: its own words, turned into one line with the remedy.

pcm says everything on stderr and exits with 1, whatever the cause; its last
line (`Access to ... has denied`) is the same for most of them, so it is looked
for last. Stopped by a signal it exits with 0: that is no proof of health.
"""

import re
from dataclasses import dataclass

# The remedy of a module that is not loaded, and of a container without the device.
MSR_REMEDY = "load it on the host with: modprobe msr; a container needs /dev/cpu and CAP_SYS_RAWIO"
# Failures with which pcm cannot work here at all.
ABSENT = ("unsupported", "no_vpmu", "not_found")


@dataclass(frozen=True, slots=True)
class Failure:
    """One word for a counter, one line for a person."""

    detail: str
    reason: str

    @property
    def state(self) -> str:
        return "absent" if self.detail in ABSENT else "failed"


# What pcm said, and what it means: (pattern, detail, reason). The first that fits counts.
SYMPTOMS = (
    (
        "[uU]nsupported processor",
        "unsupported",
        "pcm does not support this processor (Intel only); perf, rapl and cpufreq are used where there are any",
    ),
    (
        "vPMU is not enabled|unsupported virtualized environment|No leaf 0 under cpuid function 11",
        "no_vpmu",
        "this virtual machine has no PMU for pcm: enable the vPMU in the hypervisor (KVM: -cpu host,pmu=on), or use bare metal",
    ),
    (
        "occupied by other application",
        "busy",
        "another program uses the performance counters: stop it (perf, a profiler, a second pcm), or reset them once with: pcm -r",
    ),
    (
        "PMU is in use",
        "busy",
        "another program uses the performance counters: stop it, or reset them once with: pcm -r",
    ),
    (
        "Secure Boot detected",
        "lockdown",
        "the kernel is locked down (Secure Boot): pcm may not touch MSRs; turn Secure Boot off, or rely on perf and rapl",
    ),
    (
        "can't open MSR handle|Could not open /dev/cpu",
        "no_msr",
        f"no access to the MSR device: {MSR_REMEDY}",
    ),
    ("modprobe msr", "no_msr", f"the msr module is not loaded: {MSR_REMEDY}"),
    (
        "opening /dev/mem failed",
        "lockdown",
        "no access to /dev/mem: the kernel is locked down, or CAP_SYS_RAWIO is missing",
    ),
    (
        "Linux Perf: Error|Error when programming",
        "perf",
        "the kernel's perf refused pcm's events: try PCM_NO_PERF=1 in pcm's environment",
    ),
    (
        "Assertion",
        "crashed",
        "pcm aborted on an assertion: a known fault on VMware and hybrid CPUs; update pcm",
    ),
    (
        "unknown command-line option",
        "option",
        "pcm did not understand an option: check pcm_command and pcm's version",
    ),
    (
        "has denied",
        "denied",
        "pcm was denied the counters: run as root with CAP_SYS_ADMIN and CAP_SYS_RAWIO, /dev/cpu and the msr module",
    ),
    ("Permission denied", "denied", "pcm was denied the counters: it needs root and the msr module"),
)
SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE"}
# What is shown of pcm's own words when we do not know them.
QUOTE_CHARACTERS = 160


def classify_exit(status: int, output: str) -> Failure:
    """A pcm that ended by itself: with a status, or below 0 by a signal."""
    if status < 0:
        name = SIGNALS.get(-status, f"signal {-status}")
        return Failure("killed", f"pcm was killed by {name}; it is started again")
    for pattern, detail, reason in SYMPTOMS:
        if re.search(pattern, output):
            return Failure(detail, reason)
    if status == 0:
        return Failure(
            "ended", "pcm ended by itself with status 0, as it does when signalled; it is started again"
        )
    if status in (126, 127):
        return Failure(
            "not_found", "pcm cannot be run: install it (Debian: apt install pcm), or set pcm_command"
        )
    said = " ".join(output.split())[-QUOTE_CHARACTERS:] or "nothing; never use -silent, it hides the reason"
    return Failure("crashed", f"pcm exited with {status} and said: {said}")
