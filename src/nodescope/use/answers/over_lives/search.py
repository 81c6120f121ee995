"""Containers by filter and by text: whole words first; letters in their order only where no word matches."""

import re
from collections.abc import Sequence

from nodescope.use.answers.container_table import Filter
from nodescope.use.answers.containers import Life

# What separates the words of a name.
BREAKS = re.compile(r"[^0-9a-z]+")


def filter_lives(lives: Sequence[Life], wanted: Filter) -> list[Life]:
    """What the filter admits; where its text is in no name, the names that have its letters in this order."""
    found = [life for life in lives if wanted.admits(life)]
    if found or not wanted.search:
        return found
    rest = wanted.without_search()
    return [life for life in lives if rest.admits(life) and has_letters(life.name, wanted.search)]


def has_letters(name: str, text: str) -> bool:
    letters = iter(name.lower())
    return all(letter in letters for letter in text.lower() if not letter.isspace())


def place_of_match(life: Life, text: str) -> int:
    """0: every word of the text begins a word of the name; 1: it is elsewhere."""
    words = BREAKS.split(f"{life.namespace} {life.name}".lower())
    return 0 if all(any(one.startswith(word) for one in words) for word in text.lower().split()) else 1
