"""The pcm source without a pcm: command lines, captures, verdicts."""

import json
from pathlib import Path

import pytest
from tests.collect.hardware import make_context, value
from tests.collect.sources.test_pcm_totals import make_answer, row_at

from nodescope.base.errors import SourceAbsent, SourceFailed
from nodescope.collect.sources.pcm.process import KEPT_BYTES, Remark, build_command, parse_version
from nodescope.collect.sources.pcm.source import PcmSource


def test_a_new_pcm_flushes_by_itself() -> None:
    command = build_command(["/usr/sbin/pcm"], 202302, 1.0, per_core=True)
    assert command[-4:] == ["/usr/sbin/pcm", "1", "-csv", "-f"]


def test_an_old_pcm_is_unbuffered_from_outside() -> None:
    """Line by line would hold each row back until the next begins."""
    command = build_command(["/usr/sbin/pcm"], 202205, 0.5, per_core=False)
    assert command[-4:] == ["/usr/sbin/pcm", "0.5", "-csv", "-nc"]
    assert "-f" not in command
    assert "-o0" in command


def test_what_must_never_be_asked_of_pcm() -> None:
    """-silent hides the diagnosis, -r takes the counters away from others."""
    for version in (None, 201902, 202604):
        command = build_command(["pcm"], version, 1.0, per_core=True)
        assert not {"-silent", "--silent", "-r"} & set(command)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("version:  (202302-1)\n", 202302),
        ("version: (202604)", 202604),
        ("", None),
        ("System,System,\n", None),
    ],
)
def test_the_version_is_read_from_its_own_words(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_what_pcm_says_is_kept_at_both_ends_only() -> None:
    remark = Remark()
    remark.add(b"first words ")
    for _ in range(1000):
        remark.add(b"x" * 1000)
    remark.add(b" last words")
    text = str(remark)
    assert text.startswith("first words")
    assert text.endswith("last words")
    assert len(text) <= 2 * KEPT_BYTES


def test_no_pcm_is_absent_with_three_remedies(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match=r"apt install pcm.*pcm_command.*--pcm-url"):
        PcmSource(make_context(tmp_path, pcm_command=str(tmp_path / "pcm")))


def test_a_rival_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    source = PcmSource(make_context(tmp_path, pcm_command="true"), lambda *_: [(42, "pcm")])
    with pytest.raises(SourceFailed, match=r"another PCM runs: pcm \(pid 42\)"):
        source.read()
    assert source._process is None
    assert source.pace_seconds == 1.0


def test_pauses_grow_up_to_a_minute(tmp_path: Path) -> None:
    source = PcmSource(make_context(tmp_path, pcm_command="true"), lambda *_: [(42, "pcm")])
    pauses = []
    for _ in range(9):
        with pytest.raises(SourceFailed):
            source.read()
        pauses.append(source.pace_seconds)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_a_captured_answer_is_replayed(tmp_path: Path) -> None:
    """calls/pcm.json of a fixture node: what `read` returned, as plain data."""
    (tmp_path / "node.toml").write_text("")
    root = tmp_path / "t0"
    (root / "calls").mkdir(parents=True)
    (root / "calls/pcm.json").write_text(json.dumps(make_answer(row_at(0), row_at(1))))
    source = PcmSource(make_context(root))
    system = source.parse(source.read(), 0)[-2]
    assert value(system, "pcm.memory") == pytest.approx(2.0e9)


def test_a_fixture_without_one_is_absent(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("")
    (tmp_path / "t0").mkdir()
    with pytest.raises(SourceAbsent, match="not captured"):
        PcmSource(make_context(tmp_path / "t0"))
