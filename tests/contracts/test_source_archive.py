"""The source archive (sdist): what installers make of it."""

from pathlib import Path

from hatchling.builders.sdist import SdistBuilder

ROOT = Path(__file__).resolve().parents[2]


def test_a_link_leads_to_a_file_of_the_archive() -> None:
    """uv refuses an archive with any other link: absolute, leading out of it, or to nothing that is a path."""
    files = {Path(file.path) for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    links = [path for path in files if path.is_symlink()]
    assert [path for path in links if path.resolve() not in files or path.readlink().is_absolute()] == []
    assert ROOT / "src/nodescope/cli.py" in files
