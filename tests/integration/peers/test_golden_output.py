"""
node_exporter's own fixtures and its own golden output: our sources say the same.

Its Go module carries the files of a pretended machine (`collector/fixtures`) and
what it makes of them (`e2e-output.txt`). The families that we publish under its
names are read from the same files and compared series by series.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.peers.binaries import HERE, peer_version
from tests.integration.peers.comparison import Series, parse_exposition
from tests.support import TurnableClock, build_parts_at

pytestmark = pytest.mark.real

# Names that are compared, as a whole.
FAMILIES = re.compile(
    r"node_(netstat|sockstat|softnet|nf_conntrack|udp_queues|network|bonding|infiniband|hwmon|cooling_device|thermal_zone"
    r"|cpu_(core|package)_throttles|edac|md|schedstat|entropy|kernel_hung_tasks|processes_max)_?.*"
)
# What its own flags or versions make different from what a default node_exporter publishes.
LEFT_OUT = re.compile(
    # Channels of a memory row: not in any dashboard that we know.
    r"node_edac_channel_.+"
    # We keep more fields than its default.
    r"|node_netstat_Tcp_(MaxConn|AttemptFails|EstabResets)"
    # Of netlink, or of /proc/net/dev, where its fixture has other devices.
    r"|node_network_(receive|transmit)_.+"
    # Elements that no sensor of a dashboard has.
    r"|node_hwmon_(beep_enabled|.+_(beep|type|offset|interval|div|label|pulses)(_celsius|_volts|_rpm)?|.*auto.*|.*pwm.*)"
    r"|node_hwmon_power_(accuracy|.*interval.*)|node_hwmon_(freq|intrusion)_.+|node_hwmon_fan_(manual|output|tolerance)"
    r"|node_hwmon_(fan|in)_beep_enabled"
    # The file of the fixture is too short for it: it says 0, we say nothing.
    r"|node_softnet_backlog_len"
    # Its fixture has two files that say different things of the same number; ours is of the node's namespace.
    r"|node_nf_conntrack_entries"
)
TTAR_PATH = re.compile(r"^(Path|Directory|SymlinkTo|Lines|Mode): (.*)$")


def fixtures() -> Path:
    """The fixtures in Go's module cache; downloaded where they are not there yet."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go: install golang to compare with node_exporter's own golden output")
    module = f"github.com/prometheus/node_exporter@{peer_version('node_exporter')}"
    found = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=HERE / "node_exporter",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=True,
    )
    folder = re.search(r'"Dir": "([^"]+)"', found.stdout)
    assert folder, found.stdout
    return Path(folder[1]) / "collector" / "fixtures"


def unpack(archive: Path, target: Path) -> None:
    """A ttar file: a text with one entry after the other."""
    lines = archive.read_text().split("\n")
    place = 0
    path = target
    while place < len(lines):
        match = TTAR_PATH.match(lines[place])
        place += 1
        if match is None:
            continue
        word, value = match.groups()
        if word == "Directory":
            (target / value).mkdir(parents=True, exist_ok=True)
        elif word == "Path":
            path = target / value
            path.parent.mkdir(parents=True, exist_ok=True)
        elif word == "SymlinkTo":
            path.symlink_to(value)
        elif word == "Lines":
            count = int(value)
            text = "\n".join(lines[place : place + count])
            # EOF marks a last line without its break; a NUL is written as a word.
            text = text.removesuffix("EOF") if text.endswith("EOF") else text + "\n"
            path.write_text(text.replace("NULLBYTE", "\0"))
            place += count


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dict[Series, float], dict[Series, float]]]:
    source = fixtures()
    root = tmp_path_factory.mktemp("fixture") / "root"
    shutil.copytree(source / "proc", root / "proc", symlinks=True)
    unpack(source / "sys.ttar", root)
    parts = build_parts_at(root, TurnableClock(), kubernetes=False)
    for caller in parts.sampler._callers:
        caller.ask()
    parts.sampler.tick()
    ours = parse_exposition(parts.scrape.render((), openmetrics=False))
    theirs = parse_exposition((source / "e2e-output.txt").read_text())
    yield pick(ours.values), pick(theirs.values)
    parts.sampler.stop()


def pick(values: object) -> dict[Series, float]:
    assert isinstance(values, dict)
    return {
        series: value
        for series, value in values.items()
        if FAMILIES.fullmatch(series[0]) and not LEFT_OUT.fullmatch(series[0])
    }


def show(series: Series) -> str:
    name, labels = series
    return f"{name}{dict(sorted(labels))}"


def test_every_series_of_its_golden_output_is_ours(
    pair: tuple[dict[Series, float], dict[Series, float]],
) -> None:
    """None is missing, and every value is the same."""
    ours, theirs = pair
    assert len(theirs) > 300
    missing = sorted(map(show, theirs.keys() - ours.keys()))
    assert not missing, f"{len(missing)} missing:\n" + "\n".join(missing[:60])
    wrong = {
        show(series): (ours[series], value)
        for series, value in theirs.items()
        if ours[series] != pytest.approx(value)
    }
    assert not wrong
