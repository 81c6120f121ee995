"""What the person at `nodescope top` has chosen, and what each key changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

# By key: what the list is sorted by, and the word for it in the footer.
SORT_KEYS = {
    "c": ("cpu", "cpu"),
    "m": ("memory", "memory"),
    "l": ("memory_limit_share", "limit"),
    "t": ("cpu_throttled", "throttled"),
    "r": ("restarts", "restarts"),
    "w": ("pressure_memory", "mem wait"),
    "p": ("pressure_cpu", "cpu wait"),
    "f": ("memory_file", "cache"),
    "n": ("name", "name"),
}
# How far back curves go, in seconds.
SPANS = (300, 900, 3600, 6 * 3600, 86_400)
STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}
ENDS = {"home": 0, "g": 0, "end": -1, "G": -1}
FILTER_LETTERS = 80


@dataclass(frozen=True, slots=True)
class TopState:
    """Of the list, and of the container that was opened."""

    sort: str
    chosen: str = ""
    """The key of a row; empty: the first, whoever that is."""
    wanted: str = ""
    """Words that the names of the listed have."""
    is_typing: bool = False
    opened: str = ""
    """The key of the row whose curves are shown."""
    span: int = SPANS[1]
    is_ended: bool = False

    def place(self, keys: Sequence[str]) -> int:
        """Where the chosen one is; the first where it is not listed."""
        return keys.index(self.chosen) if self.chosen in keys else 0


def press(state: TopState, key: str, keys: Sequence[str]) -> TopState:
    """The state after a key; `keys` are those of the rows as they are listed."""
    if state.is_typing:
        return type_letter(state, key)
    if key == "q":
        return replace(state, is_ended=True)
    if key in STEPS or key in ENDS:
        return move(state, key, keys)
    return press_in_curves(state, key) if state.opened else press_in_list(state, key, keys)


def type_letter(state: TopState, key: str) -> TopState:
    if key == "enter":
        return replace(state, is_typing=False)
    if key == "escape":
        return replace(state, is_typing=False, wanted="")
    if key == "backspace":
        return replace(state, wanted=state.wanted[:-1])
    return replace(state, wanted=(state.wanted + key)[:FILTER_LETTERS]) if len(key) == 1 else state


def move(state: TopState, key: str, keys: Sequence[str]) -> TopState:
    """Up and down; of opened curves, to the next container of the list."""
    if not keys:
        return state
    place = ENDS[key] if key in ENDS else state.place(keys) + STEPS[key]
    chosen = keys[-1] if place == -1 and key in ENDS else keys[max(0, min(len(keys) - 1, place))]
    return replace(state, chosen=chosen, opened=chosen if state.opened else "")


def press_in_list(state: TopState, key: str, keys: Sequence[str]) -> TopState:
    if key in SORT_KEYS:
        return replace(state, sort=SORT_KEYS[key][0])
    if key == "/":
        return replace(state, is_typing=True)
    if key == "escape":
        return replace(state, wanted="")
    if key in {"enter", "right"} and keys:
        chosen = keys[state.place(keys)]
        return replace(state, chosen=chosen, opened=chosen)
    return state


def press_in_curves(state: TopState, key: str) -> TopState:
    if key in {"escape", "enter", "left", "backspace"}:
        return replace(state, opened="")
    if key in {"+", "-", "="}:
        place = SPANS.index(state.span) + (1 if key == "-" else -1)
        return replace(state, span=SPANS[max(0, min(len(SPANS) - 1, place))])
    return state
