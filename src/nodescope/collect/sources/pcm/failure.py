"""
Why pcm gave no data: its own words, turned into one line with the remedy.

pcm says everything on stderr and exits with 1, whatever the cause; its last
line (`Access to ... has denied`) is the same for most of them, so it is looked
for last. Stopped by a signal it exits with 0: that is no proof of health.
"""

from dataclasses import dataclass
from typing import Literal

# The remedy of a module that is not loaded, and of a container without the device.
MSR_REMEDY = "load it on the host with: modprobe msr; a container needs /dev/cpu and CAP_SYS_RAWIO"


@dataclass(frozen=True, slots=True)
class Failure:
    """One line for a person, one word for a counter."""

    state: Literal["absent", "failed"]
    detail: str
    reason: str


@dataclass(frozen=True, slots=True)
class Symptom:
    """A text of pcm and what it means."""

    text: str
    failure: Failure


def _absent(detail: str, reason: str) -> Failure:
    return Failure("absent", detail, reason)


def _failed(detail: str, reason: str) -> Failure:
    return Failure("failed", detail, reason)


UNSUPPORTED = _absent(
    "unsupported",
    "pcm does not support this processor (Intel only); perf, rapl and cpufreq are used where there are any",
)
NO_VPMU = _absent(
    "no_vpmu",
    "this virtual machine has no PMU for pcm: enable the vPMU in the hypervisor (KVM: -cpu host,pmu=on), or use bare metal",
)
# Looked for in this order, in everything pcm said.
SYMPTOMS = (
    Symptom("unsupported processor", UNSUPPORTED),
    Symptom("Unsupported processor", UNSUPPORTED),
    Symptom("vPMU is not enabled", NO_VPMU),
    Symptom("unsupported virtualized environment", NO_VPMU),
    Symptom("No leaf 0 under cpuid function 11", NO_VPMU),
    Symptom(
        "occupied by other application",
        _failed(
            "busy",
            "another program uses the performance counters: stop it (perf, a profiler, a second pcm), or reset them once with: pcm -r",
        ),
    ),
    Symptom(
        "PMU is in use",
        _failed(
            "busy", "another program uses the performance counters: stop it, or reset them once with: pcm -r"
        ),
    ),
    Symptom(
        "Secure Boot detected",
        _failed(
            "lockdown",
            "the kernel is locked down (Secure Boot): pcm may not touch MSRs; turn Secure Boot off, or rely on perf and rapl",
        ),
    ),
    Symptom("can't open MSR handle", _failed("no_msr", f"no access to the MSR device: {MSR_REMEDY}")),
    Symptom("Could not open /dev/cpu", _failed("no_msr", f"no access to the MSR device: {MSR_REMEDY}")),
    Symptom("modprobe msr", _failed("no_msr", f"the msr module is not loaded: {MSR_REMEDY}")),
    Symptom(
        "opening /dev/mem failed",
        _failed("lockdown", "no access to /dev/mem: the kernel is locked down, or CAP_SYS_RAWIO is missing"),
    ),
    Symptom(
        "Linux Perf: Error",
        _failed("perf", "the kernel's perf refused pcm's events: try PCM_NO_PERF=1 in pcm's environment"),
    ),
    Symptom(
        "Error when programming",
        _failed("perf", "the kernel's perf refused pcm's events: try PCM_NO_PERF=1 in pcm's environment"),
    ),
    Symptom(
        "Assertion",
        _failed(
            "crashed", "pcm aborted on an assertion: a known fault on VMware and hybrid CPUs; update pcm"
        ),
    ),
    Symptom(
        "unknown command-line option",
        _failed("option", "pcm did not understand an option: check pcm_command and pcm's version"),
    ),
    Symptom(
        "has denied",
        _failed(
            "denied",
            "pcm was denied the counters: run as root with CAP_SYS_ADMIN and CAP_SYS_RAWIO, /dev/cpu and the msr module",
        ),
    ),
    Symptom(
        "Permission denied",
        _failed("denied", "pcm was denied the counters: it needs root and the msr module"),
    ),
)
SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE"}
# What is shown of pcm's own words when we do not know them.
QUOTE_CHARACTERS = 160


def classify_exit(status: int, output: str) -> Failure:
    """A pcm that ended by itself: with a status, or below 0 by a signal."""
    if status < 0:
        name = SIGNALS.get(-status, f"signal {-status}")
        return _failed("killed", f"pcm was killed by {name}; it is started again")
    known = next((symptom.failure for symptom in SYMPTOMS if symptom.text in output), None)
    if known:
        return known
    if status == 0:
        return _failed(
            "ended", "pcm ended by itself with status 0, as it does when signalled; it is started again"
        )
    if status in (126, 127):
        return _absent(
            "not_found", "pcm cannot be run: install it (Debian: apt install pcm), or set pcm_command"
        )
    said = " ".join(output.split())[-QUOTE_CHARACTERS:] or "nothing; never use -silent, it hides the reason"
    return _failed("crashed", f"pcm exited with {status} and said: {said}")
