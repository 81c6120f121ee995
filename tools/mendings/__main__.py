"""
Takes each mending out, in a copy of the tree, and looks whether its tests fail.

    python -m tools.mendings            all rows
    python -m tools.mendings 2 5 16     these rows
    python -m tools.mendings --list     which text and which tests belong to each
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.mendings.table import MENDINGS, Mending

ROOT = Path(__file__).resolve().parents[2]
# A test that a mutant sends into an endless wait.
LONGEST_SECONDS = 1200


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mendings", description=__doc__)
    parser.add_argument("rows", nargs="*", type=int, metavar="ROW")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    options = parser.parse_args()
    chosen = [one for one in MENDINGS if not options.rows or one.row in options.rows]
    if options.list:
        print("\n".join(f"{one.row}  {one.what}: {', '.join(one.tests)}" for one in chosen))
        return 0
    with tempfile.TemporaryDirectory(prefix="nodescope-mendings-") as scratch:
        copy = Path(scratch, "tree")
        copy_tree(copy)
        told = [judge(copy, one) for one in chosen]
    return 0 if all(told) else 1


def copy_tree(target: Path) -> None:
    """What git would commit, and the native reader, which is built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    built = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.so")]
    for name in [*filter(None, listed.split("\0")), *built]:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink() or (ROOT / name).is_file():
            shutil.copy2(ROOT / name, path, follow_symlinks=False)


def take_out(text: str, mending: Mending) -> str:
    """The file without the mending; ValueError where its text does not stand there once."""
    if (found := text.count(mending.text)) != 1:
        raise ValueError(f"{mending.file} has {mending.text!r} {found} times, not once")
    return text.replace(mending.text, mending.without)


def judge(copy: Path, mending: Mending) -> bool:
    """Whether each of its tests fails without it; told on one line."""
    path = copy / mending.file
    whole = path.read_text()
    path.write_text(take_out(whole, mending))
    try:
        failed = run_tests(copy, mending.tests)
    finally:
        path.write_text(whole)
    kept = [test for test in mending.tests if test not in failed]
    print(f"{mending.row:2} {'no test' if kept else 'fails  '} {mending.what}", flush=True)
    for test in kept:
        print(f"     still passes, or was skipped: {test}", flush=True)
    return not kept


def run_tests(copy: Path, tests: tuple[str, ...]) -> set[str]:
    """Those that failed, by the name that they were asked for; a fixture that cannot start is a failure, too."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-rfE", "--no-header", "--tb=no", *tests]
    places = {"PYTHONPATH": f"{copy / 'src'}:{copy}"}
    done = subprocess.run(
        command,
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
        env={**os.environ, **places},
    )
    if done.returncode not in (0, 1):
        # Not a failure of a test: it was never run.
        raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    lines = re.findall(r"^(?:FAILED|ERROR) (\S+?)(?:\[.*)?(?: - .*)?$", done.stdout, re.MULTILINE)
    return set(lines)


if __name__ == "__main__":
    sys.exit(main())
