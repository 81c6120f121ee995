"""
Installs a lock file into .venv, and says what it does meanwhile: `tools/setup` calls it.

    python -m tools.set_up run      what runs: with uv where it is on the machine, else with pip
    python -m tools.set_up dev      all: with uv

Standard library only, and no pip or compiler: a minimal Debian has Python and nothing beside.
"""

import os
import platform
import sys
import time

from tools.set_up import with_pip, with_uv
from tools.set_up.index import ROOT, RUN_LOCKS, FetchFailed, list_locked, make_environment, read_pip_conf
from tools.set_up.progress import Progress, give_up, say

# What each kind of set-up installs. The second has all of the first.
LOCKS = {"run": RUN_LOCKS, "dev": ("requirements.lock",)}


def main(kind: str) -> int:
    began = time.monotonic()
    environment = make_environment(os.environ, read_pip_conf())
    locks = LOCKS[kind]
    packages = len(set().union(*({name for name, _ in list_locked(ROOT / lock)} for lock in locks)))
    say(f"setting up .venv with Python {platform.python_version()} (once): {packages} packages")
    progress = Progress()
    uv = with_uv.find_uv()
    try:
        with_little = kind == "run" and uv is None and with_pip.set_up(environment, progress)
        if not with_little:
            with_uv.set_up(uv, kind, locks, environment, progress)
    except FetchFailed as failure:
        raise give_up(str(failure)) from None
    say(f"set up in {time.monotonic() - began:.0f} s: {tell_fetched(progress)}")
    return 0


def tell_fetched(progress: Progress) -> str:
    return (
        f"{progress.done:.0f} MiB fetched" if progress.done else "nothing was fetched, all was in the cache"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
