"""Every command that a page shows is run by a test, or the page says why not."""

import re

from tests.docs.pages import Block, list_blocks, list_pages

COMMAND = re.compile(
    r"^(?:\$ )?(?:sudo )?(?:\.venv/bin/)?(?:nodescope(?! \d)|make|kubectl|helm|docker|podman|curl|pip|python3? -[mc]) ",
    re.MULTILINE,
)
SHELLS = frozenset({"sh", "bash", "console"})


def hides_commands(block: Block) -> bool:
    """A block of commands that no test looks at, because it does not say that it is one."""
    return block.language not in SHELLS and COMMAND.search(block.text) is not None


def test_a_block_of_commands_says_so() -> None:
    blocks = [block for page in list_pages() for block in list_blocks(page)]
    assert len([block for block in blocks if block.language in SHELLS]) > 20
    assert [str(block) for block in blocks if hides_commands(block) and block.language in {"", "text"}] == []


def test_a_command_that_is_not_run_has_its_reason() -> None:
    for page in list_pages():
        for block in list_blocks(page):
            if block.language in SHELLS and not (block.runs or block.place):
                assert re.fullmatch(r" *no-run: \S.+", block.about), f"{block}: no-run has no reason"
