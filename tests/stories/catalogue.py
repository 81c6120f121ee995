"""All stories by name."""

from tests.stories import (
    told_incidents,
    told_limits,
    told_nodes,
    told_who,
    told_windows,
    told_words,
    told_workloads,
)
from tests.stories.story import Story

MODULES = (told_who, told_workloads, told_incidents, told_windows, told_limits, told_nodes, told_words)
STORIES: dict[str, Story] = {story.name: story for module in MODULES for story in module.STORIES}
