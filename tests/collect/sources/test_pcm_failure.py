"""What pcm says when it cannot work, and what we make of it."""

import pytest
from tests.samples import find_samples

from nodescope.collect.sources.pcm.failure import classify_exit

# (text as pcm writes it, state, detail, a word of the remedy)
TEXTS = [
    (
        (
            "Error: unsupported processor. Only Intel(R) processors are supported (Atom(R) ...).\n"
            "Access to Intel(r) Performance Counter Monitor has denied (no MSR or PCI CFG space access)."
        ),
        "absent",
        "unsupported",
        "Intel",
    ),
    (
        (
            "ERROR: vPMU is not enabled in the hypervisor. Please see details in ...\n"
            "Access to Intel(r) Performance Counter Monitor has denied (no MSR or PCI CFG space access)."
        ),
        "absent",
        "no_vpmu",
        "hypervisor",
    ),
    (
        (
            "Warning: detected an unsupported virtualized environment: the hypervisor has limited the core "
            "performance monitoring unit to perfmon version 1"
        ),
        "absent",
        "no_vpmu",
        "vPMU",
    ),
    (
        (
            "PCM Error: can't open MSR handle for core 0 (No such file or directory)\nTry no-MSR mode by setting env "
            "variable PCM_NO_MSR=1\ntry to execute 'modprobe msr' as root user and then you also must have read and "
            "write permissions for /dev/cpu/*/msr devices\nAccess to Processor Counter Monitor has denied "
            "(no MSR or PCI CFG space access)."
        ),
        "failed",
        "no_msr",
        "modprobe msr",
    ),
    (
        (
            "Access to Intel(r) Performance Counter Monitor has denied (Performance Monitoring Unit is occupied "
            "by other application). Try to stop the application that uses PMU."
        ),
        "failed",
        "busy",
        "stop it",
    ),
    (
        "Secure Boot detected. Using Linux perf for uncore PMU programming.\nhas denied",
        "failed",
        "lockdown",
        "Secure Boot",
    ),
    ("opening /dev/mem failed: errno is 1 (Operation not permitted)", "failed", "lockdown", "/dev/mem"),
    ("Linux Perf: Error on programming INST_RETIRED.ANY", "failed", "perf", "PCM_NO_PERF"),
    (
        "pcm: cpucounters.cpp:1: Assertion `x' failed.\nDEBUG: caught signal to interrupt (Aborted).",
        "failed",
        "crashed",
        "update",
    ),
    (
        "Access to Processor Counter Monitor has denied (no MSR or PCI CFG space access).",
        "failed",
        "denied",
        "root",
    ),
]


@pytest.mark.parametrize(
    ("text", "state", "detail", "word"), TEXTS, ids=[row[2] + str(n) for n, row in enumerate(TEXTS)]
)
def test_a_failure_is_recognised_with_its_remedy(text: str, state: str, detail: str, word: str) -> None:
    """The last line is the same for most causes: the first that fits counts."""
    failure = classify_exit(1, text)
    assert (failure.state, failure.detail) == (state, detail)
    assert word in failure.reason
    assert "\n" not in failure.reason


def test_status_zero_is_no_proof_of_health() -> None:
    """Pcm that was signalled exits with 0."""
    failure = classify_exit(0, "Cleaning up")
    assert (failure.state, failure.detail) == ("failed", "ended")


def test_a_signal_is_named() -> None:
    assert "SIGKILL" in classify_exit(-9, "").reason
    assert "signal 34" in classify_exit(-34, "").reason


def test_unknown_words_are_quoted_short() -> None:
    """A person must see what pcm said, not the kilobytes before it."""
    failure = classify_exit(255, "x" * 5000 + "\nPCM ERROR. Exception: cannot create file")
    assert "cannot create file" in failure.reason
    assert len(failure.reason) < 300


def test_silence_points_at_silent() -> None:
    """With -silent pcm exits with 1 and no word."""
    assert "-silent" in classify_exit(1, "").reason


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        *(
            (name, "unsupported")
            for name in ("csv", "csv_1_i2", "csv_f_i2", "csv_nc", "csv_nomsr", "nonroot_csv", "cpuset1_csv")
        ),
        *((name, "unsupported") for name in ("memory", "power", "sensor", "sensor_server")),
        ("notfound", "not_found"),
        ("csv_silent", "crashed"),
    ],
)
def test_real_failures_are_recognised(name: str, detail: str) -> None:
    """Captured on a machine that PCM does not support."""
    folder = find_samples("pcm", "failures")
    listed = dict(line.split("\t")[0:3:2] for line in (folder / "index.tsv").read_text().splitlines())
    status = int(listed[name].removeprefix("rc="))
    said = (folder / f"{name}.stderr").read_text()
    assert classify_exit(status, said).detail == detail
