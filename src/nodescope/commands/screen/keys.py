"""Keys as terminals send them."""

import re
from collections.abc import Iterator

# With the cursor keys in either of their two modes.
NAMED = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[C": "right",
    "\x1bOC": "right",
    "\x1b[D": "left",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
    "\t": "tab",
}
# A sequence of the terminal whole, also one that means nothing here; else a letter.
KEY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[@-~]|.", re.DOTALL)


def split_keys(text: str) -> Iterator[str]:
    """Names of keys, and letters as they are; what nobody could have meant is left out."""
    for key in KEY.findall(text):
        named = NAMED.get(key, key)
        if named != key or key.isprintable():
            yield named
