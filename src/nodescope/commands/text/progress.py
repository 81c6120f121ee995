"""A progress bar on stderr; nothing is written where stderr is no terminal."""

import sys

WIDTH = 40


def show_progress(share: float, words: str = "") -> None:
    """`[####....] words` over the line before; the percentage unless there are words."""
    if sys.stderr.isatty():
        filled = round(share * WIDTH)
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {words or f'{share:4.0%}'}")
        sys.stderr.flush()


def clear_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")
