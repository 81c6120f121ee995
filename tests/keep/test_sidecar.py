"""Sidecars: what goes in comes out; the version before is read, a newer one refused by name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from tests.keep.frames import frames, write_log

from nodescope.base.errors import ArchiveRefused
from nodescope.keep.convert import convert_all
from nodescope.keep.disk import Disk
from nodescope.keep.folder import DataFolder
from nodescope.keep.sidecar import parse_sidecar, render_sidecar


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    folder = DataFolder(tmp_path)
    write_log(folder, frames(10))
    convert_all(Disk(), folder)
    return next(iter(folder.files())).sidecar.read_bytes()


def split(data: bytes) -> list[dict[str, object]]:
    """One object per zstd frame, as `zstdcat | jq` shows them."""
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return [json.loads(line) for line in reader.read().decode().splitlines()]


def pack(parts: list[dict[str, object]]) -> bytes:
    frames_of = [zstandard.compress(json.dumps(part).encode() + b"\n") for part in parts]
    parts[0]["sizes"] = [len(one) for one in frames_of[1:]]
    return b"".join([zstandard.compress(json.dumps(parts[0]).encode() + b"\n"), *frames_of[1:]])


def test_what_was_read_is_written_again_byte_for_byte(data: bytes) -> None:
    assert render_sidecar(parse_sidecar(data).whole()) == data


def test_version_1_with_its_ticks_in_the_story_is_read(data: bytes) -> None:
    head, metrics, series, story, ticks = split(data)
    old = pack([{**head, "version": 1, "sealed": False}, metrics, series, {**story, **ticks}])
    one, other = parse_sidecar(old).whole(), parse_sidecar(data).whole()
    assert one.ticks.time_ms.tolist() == other.ticks.time_ms.tolist()
    assert (one.subjects, one.metrics, one.events) == (other.subjects, other.metrics, other.events)


def test_a_newer_version_is_refused_by_its_number(data: bytes) -> None:
    parts = split(data)
    with pytest.raises(ArchiveRefused, match="sidecar of version 99"):
        parse_sidecar(pack([{**parts[0], "version": 99}, *parts[1:]]))


def test_a_converter_does_not_load_pandas(tmp_path: Path) -> None:
    """It lives for half a second; pandas, where it is installed, would double that and its memory."""
    write_log(DataFolder(tmp_path), frames(5))
    code = (
        "import sys; from nodescope.keep.convert import main; main(sys.argv[1:]); "
        "sys.exit('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, json.loads(done.stdout)["segments"]) == (0, 1)
