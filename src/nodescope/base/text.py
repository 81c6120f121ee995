"""Names: cleaning what tenants wrote, the nearest valid name on a miss, and a metric in a sentence."""

import hashlib
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

# A Kubernetes name has at most 253 characters; a kernel path component 255.
# Longer text is somebody's attempt, and is cut.
TEXT_CHARACTERS = 256
# Of a path in a label.
PATH_CHARACTERS = 1024
DIGEST_CHARACTERS = 16
# Surrogates that stand for no byte: JSON may carry them, no encoding can.
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
# Words of a metric's name that a sentence writes in another way.
ABBREVIATIONS = {"cpu": "CPU", "gpu": "GPU", "oom": "OOM", "pss": "PSS", "io": "I/O"}


def clean_text(text: str, limit_characters: int = TEXT_CHARACTERS) -> str:
    r"""
    Tenant text, safe to print: control characters become spaces, the rest stays.

    Bytes that are not UTF-8 arrive as surrogates (os.fsdecode) and leave as
    \xff: every way out can encode what it got, and two names stay two.
    """
    # Almost every name is plain; the check is cheaper than the loop.
    if text.isprintable() and text.isascii() and len(text) <= limit_characters:
        return text
    bytewise = _LONE_SURROGATE.sub("\ufffd", text)
    whole = bytewise.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter.isprintable() else " " for letter in whole)
    return shown[:limit_characters]


# A pod's name may be 253 characters; longer than this it would crowd out the
# sentence it stands in. Its end, which tells replicas apart, stays.
NAME_CHARACTERS, KEPT_END = 80, 20


def clean_name(text: object) -> str:
    """A tenant's text as it may stand between quotation marks in a sentence: it cannot end them, nor fill it."""
    name = clean_text(str(text or ""), 1000).replace('"', "'")
    if len(name) <= NAME_CHARACTERS:
        return name
    return f"{name[: NAME_CHARACTERS - KEPT_END - 3]}...{name[-KEPT_END:]}"


def clean_path(text: str) -> str:
    """pod/container, each part as the names of containers are cleaned, so that they match."""
    return "/".join(clean_name(part) for part in text.split("/"))


def shorten_path(path: str) -> str:
    """
    A path that a label may have; where it is cut, two paths stay two.

    The end is a digest of the whole then: equal labels would be one series twice.
    """
    shown = clean_text(path, PATH_CHARACTERS + 1)
    if len(shown) <= PATH_CHARACTERS:
        return shown
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:DIGEST_CHARACTERS]
    return f"{shown[: PATH_CHARACTERS - DIGEST_CHARACTERS - 1]}~{digest}"


def nearest_name(wrong: str, known: Iterable[str]) -> str | None:
    """The one known name a person most likely meant: of those that are close, one with two letters exchanged."""
    close = get_close_matches(wrong, list(known), n=5, cutoff=0.6)
    exchanged = (one for one in close if are_exchanged(wrong, one))
    return next(exchanged, close[0] if close else None)


def are_exchanged(wrong: str, right: str) -> bool:
    """Whether two neighbouring letters are all that differs: the most frequent slip of fingers."""
    differ = [place for place, (one, other) in enumerate(zip(wrong, right, strict=False)) if one != other]
    if len(wrong) != len(right) or len(differ) != 2 or differ[1] != differ[0] + 1:
        return False
    first, second = differ
    return (wrong[first], wrong[second]) == (right[second], right[first])


def hint_nearest(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean "memory"?`, or nothing when no name is near."""
    near = nearest_name(wrong, known)
    return f'; did you mean "{near}"?' if near else ""


def render_unknown(what: str, name: str, known: Collection[str]) -> str:
    """One line for an error: what was wrong, the nearest name, and what is accepted."""
    return f'no {what} "{name}"{hint_nearest(name, known)} (accepted: {", ".join(known)})'


def render_metric(name: str) -> str:
    """A plain name as a sentence has it: pressure_cpu is CPU pressure; a raw name stays as it is."""
    if not name.replace("_", "").isalpha() or not name.islower():
        return name
    first, *rest = name.split("_")
    words = [*rest, first] if first == "pressure" else [first, *rest]
    return " ".join(ABBREVIATIONS.get(word, word) for word in words)


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
