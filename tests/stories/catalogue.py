"""All stories by name."""

from tests.stories.story import Story
from tests.stories.told import incidents, limits, nodes, who, windows, words, workloads

MODULES = (who, workloads, incidents, windows, limits, nodes, words)
STORIES: dict[str, Story] = {story.name: story for module in MODULES for story in module.STORIES}
