"""The copy to a store: whole or not at all, once, and resumed from any point."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support import TurnableClock

from nodescope.base.errors import RequestRejected
from nodescope.keep.consolidator import Consolidator
from nodescope.keep.copy.copied_files import end_copying, read_copied_files, read_status
from nodescope.keep.copy.copier import VERIFY_SECONDS, Copier, Partition, is_finished
from nodescope.keep.copy.manifest import MANIFEST, parse_manifest
from nodescope.keep.copy.object_store import (
    MARK,
    Digest,
    ObjectStore,
    StoreAway,
    UploadPace,
    check_build,
    check_url,
    open_store,
)
from nodescope.keep.demo.archive import write_node
from nodescope.keep.demo.story import DemoRequest
from nodescope.keep.disk import Disk
from nodescope.keep.folder import MS_PER_DAY, MS_PER_HOUR, DataFolder, parse_file
from nodescope.keep.retention import RetentionLimits, apply_retention
from nodescope.read.files.file_survey import survey_roots

# 12:00 UTC: the day is not over, the hours are.
END_MS = 1_772_366_400_000
NEXT_DAY_MS = END_MS + MS_PER_DAY


class Killed(BaseException):
    """As sudden as SIGKILL: nothing catches it."""


class Brittle(ObjectStore):
    """A store that stops the world at its n-th change, before or in the middle of it."""

    __slots__ = ("left",)
    left: int

    def __init__(self, store: ObjectStore, left: int) -> None:
        super().__init__(store.url, store.files, store.base, store.pace)
        object.__setattr__(self, "left", left)

    def step(self) -> None:
        object.__setattr__(self, "left", self.left - 1)
        if self.left < 0:
            raise Killed

    def write_whole(self, key: str, data: bytes) -> None:
        self.step()
        super().write_whole(key, data)

    def _upload(self, source: object, staged: str) -> None:
        self.step()
        super()._upload(source, staged)  # type: ignore[arg-type]

    def _name(self, staged: str, key: str) -> None:
        self.step()
        super()._name(staged, key)

    def delete(self, key: str) -> None:
        self.step()
        super().delete(key)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of one node; the first two lie in finished files of an hour."""
    path = tmp_path_factory.mktemp("copy") / "data"
    write_node(DemoRequest(path, 2.2, 3, 3, END_MS, "n1"), "0", lambda _: None)
    return path


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "data"
    shutil.copytree(made, path)
    return path


def copier(data: Path, url: str, now_ms: int = END_MS, store: ObjectStore | None = None) -> Copier:
    opened = store or open_store(url)
    if not opened.is_set_up():
        open_store(url).set_up()
    return Copier(Disk(), DataFolder(data), opened, TurnableClock(now_ms * 1_000_000, 0))


def consolidated(data: Path) -> dict[str, str]:
    return {
        str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data.glob("dt=*/*/consolidated-*"))
    }


def objects(target: Path) -> dict[str, str]:
    return {
        str(path.relative_to(target)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(target.rglob("consolidated-*"))
    }


def served(target: Path) -> Iterator[tuple[str, int]]:
    """(name, rows) of what readers see; each must be there, whole."""
    for manifest in target.rglob(MANIFEST):
        for one in parse_manifest(manifest.read_bytes()).files.values():
            content = (manifest.parent / one.name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == one.sha256
            sidecar = (manifest.parent / one.sidecar).read_bytes()
            assert hashlib.sha256(sidecar).hexdigest() == one.sidecar_sha256
            yield one.name, one.rows


def test_every_finished_file_is_copied_once(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "store"
    url = target.as_uri()
    first = copier(data, url).run_pass(everything=True)
    assert (first.files, first.waiting, first.failures) == (len(consolidated(data)) // 2, 0, {})
    assert objects(target) == consolidated(data)
    assert copier(data, url).run_pass(everything=True).files == 0


def test_a_lost_list_of_copied_files_sends_nothing_again(data: Path, tmp_path: Path) -> None:
    url = (tmp_path / "store").as_uri()
    copier(data, url).run_pass(everything=True)
    end_copying(Disk(), DataFolder(data))
    again = copier(data, url)
    assert again.run_pass(everything=True).files == 0
    assert len(again.copied_files.files) == len(consolidated(data)) // 2


def test_an_hour_that_is_not_over_waits(data: Path, tmp_path: Path) -> None:
    work = copier(data, (tmp_path / "store").as_uri(), END_MS - MS_PER_HOUR)
    work.run_pass()
    names = [Path(name).name for name in work.copied_files.files]
    assert names
    assert all(
        is_finished(file, END_MS - MS_PER_HOUR)
        for name in work.copied_files.files
        if (file := parse_file(data / name))
    )
    assert len(names) < len(consolidated(data)) // 2


def test_a_fresh_file_that_nothing_was_merged_with_goes_when_its_day_is_over(data: Path) -> None:
    file = parse_file(next(iter(sorted(data.glob("dt=*/*/metrics-*.parquet")))))
    assert file
    assert not is_finished(file, END_MS + MS_PER_HOUR)
    assert is_finished(file, NEXT_DAY_MS)


def test_killed_at_any_step_and_resumed_the_same_rows_are_there_once(data: Path, tmp_path: Path) -> None:
    """Hours are in the store; then the day that replaces them is sent, and every step is a last one."""
    target = tmp_path / "store"
    url = target.as_uri()
    copier(data, url).run_pass(everything=True)
    hours = {name for name, _ in served(target)}
    rows_of_hours = sum(rows for _, rows in served(target))
    Consolidator(Disk(), DataFolder(data), 2).run_pass(NEXT_DAY_MS)
    rows_of_day = sum(file.rows for file in survey_roots([str(data)]).files)
    seen = set()
    for left in range(100):
        try:
            copier(data, url, NEXT_DAY_MS, Brittle(open_store(url), left)).run_pass(everything=True)
        except Killed:
            names = dict(served(target))
            seen.add(frozenset(names))
            # The hours or the day: never both, never half, never nothing.
            assert sum(names.values()) == (rows_of_hours if set(names) == hours else rows_of_day)
            assert sum(file.rows for file in survey_roots([url]).files) == sum(names.values())
        else:
            break
    else:
        pytest.fail("never done")
    assert left > 3
    assert len(seen) == 2
    assert objects(target) == consolidated(data)
    assert sum(rows for _, rows in served(target)) == rows_of_day


def test_what_comes_back_different_is_not_named(data: Path, tmp_path: Path) -> None:
    class Lossy(ObjectStore):
        __slots__ = ()

        def digest(self, key: str) -> Digest:
            return Digest(1, "another")

    target = tmp_path / "store"
    store = open_store(target.as_uri())
    work = copier(data, store.url, store=Lossy(store.url, store.files, store.base, store.pace))
    done = work.run_pass(everything=True)
    assert (done.files, done.waiting) == (0, len(consolidated(data)) // 2)
    assert all("another checksum" in reason for reason in done.failures.values())
    assert objects(target) == {}
    assert survey_roots([store.url]).files == []


def test_the_status_tells_how_far_behind(data: Path, tmp_path: Path) -> None:
    copier(data, (tmp_path / "store").as_uri()).run_pass(everything=True)
    status = read_status(DataFolder(data))
    assert status
    fresh = min(file.from_ms for path in data.glob("dt=*/*/metrics-*.parquet") if (file := parse_file(path)))
    assert (status.oldest_waiting_ms, status.waiting_files, status.failures) == (fresh, 0, 0)
    assert status.copied_bytes == sum(path.stat().st_size for path in data.glob("dt=*/*/consolidated-*"))


def test_the_pace_is_kept_both_ways(data: Path, tmp_path: Path) -> None:
    clock = TurnableClock(END_MS * 1_000_000, 0)
    url = (tmp_path / "store").as_uri()
    open_store(url).set_up()
    done = Copier(Disk(), DataFolder(data), open_store(url, UploadPace(100_000, clock)), clock).run_pass(
        everything=True
    )
    assert clock.mono_ns() == pytest.approx(2 * done.bytes / 100_000 * 1e9, rel=0.01)


def limits(free_bytes: int = 0, total: int = 10**12) -> RetentionLimits:
    return RetentionLimits(3600, total, free_bytes, 3600)


def test_retention_waits_for_the_copy(data: Path, tmp_path: Path) -> None:
    """Age and bytes take copied files only; without a copy they take all but the newest."""
    folder = DataFolder(data)
    before = {file.path for file in folder.files()}
    work = copier(data, (tmp_path / "store").as_uri())
    assert apply_retention(Disk(), folder, limits(total=1), NEXT_DAY_MS).files == 0
    work.run_pass(everything=True)
    apply_retention(Disk(), folder, limits(total=1), NEXT_DAY_MS)
    left = {file.path for file in folder.files()}
    assert left == {path for path in before if path.name.startswith("metrics")}
    end_copying(Disk(), folder)
    apply_retention(Disk(), folder, limits(), NEXT_DAY_MS)
    assert len(list(folder.files())) == 1


def test_a_full_disk_takes_uncopied_files_and_says_so(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = DataFolder(data)
    work = copier(data, (tmp_path / "store").as_uri())
    work.note_status(everything=True)
    freed = apply_retention(Disk(), folder, limits(free_bytes=10**18), NEXT_DAY_MS)
    assert freed.uncopied_files == freed.files > 0
    status = read_status(folder)
    assert status
    assert (status.lost_files, status.lost_bytes) == (freed.uncopied_files, freed.uncopied_bytes)
    assert "before it was copied" in caplog.text


def empty(target: Path) -> None:
    """Somebody removed every object; it is a store still."""
    shutil.rmtree(target)
    open_store(target.as_uri()).set_up()


def test_a_store_that_was_never_set_up_is_refused(data: Path, tmp_path: Path) -> None:
    """Its folder is not made, and nothing counts as copied."""
    target = tmp_path / "store"
    clock = TurnableClock(END_MS * 1_000_000, 0)
    done = Copier(Disk(), DataFolder(data), open_store(target.as_uri()), clock).run_pass(everything=True)
    assert not target.exists()
    assert (done.files, done.waiting > 0) == (0, True)
    assert ["so it is not mounted, or was never set up" in text for text in done.failures.values()] == [True]
    with pytest.raises(StoreAway):
        open_store(target.as_uri()).write_whole("dt=1/identifier=n/x.parquet", b"")


def test_a_store_that_lost_its_mark_has_not_lost_what_was_copied(data: Path, tmp_path: Path) -> None:
    """As when its mount is away: what is noted as copied stays so, and the empty mount point stays empty."""
    target, away = tmp_path / "store", tmp_path / "away"
    work = copier(data, target.as_uri())
    sent = work.run_pass(everything=True).files
    known = dict(work.copied_files.files)
    target.rename(away)
    target.mkdir()
    again = Copier(Disk(), DataFolder(data), open_store(target.as_uri()), TurnableClock(END_MS * 10**6, 0))
    assert again.run_pass(everything=True).files == 0
    assert list(target.iterdir()) == []
    copied = read_copied_files(DataFolder(data))
    assert copied
    assert (copied.files, len(known)) == (known, sent)
    target.rmdir()
    away.rename(target)
    assert again.run_pass(everything=True).failures == {}


def test_a_store_with_a_manifest_counts_as_set_up(data: Path, tmp_path: Path) -> None:
    """Stores that are older than the mark."""
    target = tmp_path / "store"
    copier(data, target.as_uri()).run_pass(everything=True)
    (target / MARK).unlink()
    assert open_store(target.as_uri()).is_set_up()


def test_what_vanished_from_the_store_is_sent_again(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "store"
    first = copier(data, target.as_uri()).run_pass(everything=True)
    empty(target)
    assert copier(data, target.as_uri()).run_pass(everything=True).files == first.files > 1
    assert objects(target) == consolidated(data)
    status = read_status(DataFolder(data))
    assert status
    assert status.vanished_files == first.files
    assert "vanished from the store" in caplog.text


@pytest.mark.parametrize("suffix", [".parquet", ".containers"])
@pytest.mark.parametrize("is_cut", [True, False], ids=["cut short", "gone"])
def test_one_object_that_its_manifest_still_lists_is_sent_again(
    data: Path, tmp_path: Path, suffix: str, *, is_cut: bool
) -> None:
    target = tmp_path / "store"
    copier(data, target.as_uri()).run_pass(everything=True)
    victim = min(target.rglob(f"consolidated-*{suffix}"))
    victim.write_bytes(victim.read_bytes()[:100])
    if not is_cut:
        victim.unlink()
    assert copier(data, target.as_uri()).run_pass(everything=True).files == 1
    assert objects(target) == consolidated(data)


def test_a_resident_copier_asks_every_hour(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "store"
    clock = TurnableClock(END_MS * 1_000_000, 0)
    open_store(target.as_uri()).set_up()
    work = Copier(Disk(), DataFolder(data), open_store(target.as_uri()), clock)
    sent = work.run_pass(everything=True).files
    empty(target)
    clock.advance(VERIFY_SECONDS * 10**9 - 1)
    assert work.run_pass(everything=True).files == 0
    clock.advance(1)
    assert work.run_pass(everything=True).files == sent


def test_a_store_that_does_not_answer_has_lost_nothing(data: Path, tmp_path: Path) -> None:
    class Mute(ObjectStore):
        __slots__ = ()

        def read(self, key: str) -> bytes | None:
            raise OSError(f"no answer about {key}")

    target = tmp_path / "store"
    copier(data, target.as_uri()).run_pass(everything=True)
    store = open_store(target.as_uri())
    work = copier(data, store.url, store=Mute(store.url, store.files, store.base, store.pace))
    known = dict(work.copied_files.files)
    work.run_pass(everything=True)
    assert work.copied_files.files == known != {}
    assert (work.status.failures, work.status.vanished_files) == (1, 0)
    assert "no answer" in work.status.last_failure
    # Asked again with the next pass, not in an hour.
    work.store = store
    empty(target)
    assert work.run_pass(everything=True).files == len(known)


def test_retention_does_not_rely_on_a_store_that_was_emptied(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "store"
    copier(data, target.as_uri()).run_pass(everything=True)
    empty(target)
    folder = DataFolder(data)
    before = [file.path for file in folder.files()]
    # Nothing can be sent either: the list of copied files must have been mended before that.
    with pytest.raises(Killed):
        copier(data, target.as_uri(), store=Brittle(open_store(target.as_uri()), 0)).run_pass(everything=True)
    assert apply_retention(Disk(), folder, limits(total=1), NEXT_DAY_MS).files == 0
    assert [file.path for file in folder.files()] == before


def test_an_hour_that_its_day_replaced_has_not_vanished(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "store"
    copier(data, target.as_uri()).run_pass(everything=True)
    hours = [Path(name) for name in consolidated(data) if name.endswith(".parquet")]
    Consolidator(Disk(), DataFolder(data), 2).run_pass(NEXT_DAY_MS)
    copier(data, target.as_uri(), NEXT_DAY_MS).run_pass(everything=True)
    for hour in hours:
        there = Partition(open_store(target.as_uri()), str(hour.parent))
        assert there.accounts_for(hour.name)
        assert not there.accounts_for("consolidated-of-nobody.parquet")


def test_another_address_begins_anew(data: Path, tmp_path: Path) -> None:
    copier(data, (tmp_path / "one").as_uri()).run_pass(everything=True)
    second = copier(data, (tmp_path / "two").as_uri())
    assert second.run_pass(everything=True).files == len(consolidated(data)) // 2
    copied = read_copied_files(DataFolder(data))
    assert copied
    assert copied.url == (tmp_path / "two").as_uri()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://KEY:SECRET@bucket/path", "credentials"),
        ("gs://key@bucket", "credentials"),
        ("abfs://key:secret@account.dfs.core.windows.net/x", "credentials"),
        ("abfs://box@account.dfs.core.windows.net/x?client_secret=SECRET", "credentials"),
        ("ftp://host/path", "accepted: s3://, gs://, abfs://, file://"),
        ("abfx://bucket", 'did you mean "abfs"'),
    ],
)
def test_an_address_is_refused_without_repeating_its_secret(url: str, told: str) -> None:
    with pytest.raises(RequestRejected, match=told) as refusal:
        check_url(url)
    assert "SECRET" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_an_azure_container_is_no_credential() -> None:
    check_url("abfs://container@account.dfs.core.windows.net/path")


def test_an_arrow_without_a_file_system_says_so() -> None:
    with pytest.raises(RequestRejected, match=r"^gs:// cannot be opened: .* has no GcsFileSystem"):
        check_build("gs", SimpleNamespace(S3FileSystem=object))
    check_build("file", SimpleNamespace())
