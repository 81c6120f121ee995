"""`nodescope top` on a terminal: keys, curves, sizes; over a folder, an agent and a viewer."""

from pathlib import Path

import pytest
from tests.integration.agents import NODESCOPE, running_agent
from tests.integration.terminal import OwnTerminal
from tests.web.archives import write_demo
from tests.web.browsing import running_viewer

pytestmark = pytest.mark.real

# What the alternate page is left with; without it the shell's lines would be gone.
LEFT = b"\x1b[?1049l"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("top") / "demo", hours=0.5, containers=8)


def open_top(*words: str, columns: int = 80, lines: int = 24) -> OwnTerminal:
    return OwnTerminal([*NODESCOPE, "top", *words], columns, lines)


def first_row(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("> "))


def test_keys_sort_filter_open_and_quit(demo: Path) -> None:
    with open_top(str(demo)) as terminal:
        terminal.await_text("by cpu", "q quit", "r restarts")
        terminal.press("m")
        terminal.await_text("by memory")
        terminal.press("r")
        terminal.await_screen(
            lambda text: "by restarts" in text and "migrator" in first_row(text), "the crash loop"
        )
        terminal.press("/cache\r")
        terminal.await_screen(
            lambda text: "cache" in first_row(text) and "migrator" not in text, "the filter"
        )
        terminal.press("\r")
        terminal.await_text("memory: newest", "peak", "Esc back")
        terminal.press("-")
        terminal.await_text("the last 60 min", "memory: newest")
        terminal.press("\x1b")
        terminal.await_text("r restarts", 'filter "cache"')
        assert not terminal.is_echoing()
        terminal.press("q")
        assert terminal.await_end() == 0
        assert terminal.sent.endswith(LEFT) or LEFT in terminal.sent
        assert terminal.is_echoing()


def test_harm_is_red_and_nothing_else_is(demo: Path) -> None:
    with open_top(str(demo)) as terminal:
        terminal.await_text("by cpu", ", 1 OOM")
        terminal.press("/cache\r")
        text = terminal.await_screen(
            lambda text: "cache" in first_row(text) and "api" not in text, "the filter"
        )
        line = next(number for number, one in enumerate(text.splitlines()) if ", 1 OOM" in one)
        red = "".join(
            cell.data for _, cell in sorted(terminal.screen.buffer[line].items()) if cell.fg == "red"
        )
    assert red == "1, 1 OOM"


def test_a_terminal_that_becomes_smaller_is_drawn_anew(demo: Path) -> None:
    with open_top(str(demo), columns=120, lines=30) as terminal:
        terminal.await_text("namespace", "cpu wait", "n name")
        terminal.resize(60, 14)
        text = terminal.await_screen(
            lambda text: "namespace" not in text and "t throttled  r restarts" in text, "a narrow list"
        )
        assert "restarts" in text.splitlines()[1]
        # Nothing wrapped: a row is a line.
        assert len([line for line in text.splitlines() if "/" in line]) <= 12


def test_ctrl_c_leaves_the_terminal_as_it_was(demo: Path) -> None:
    with open_top(str(demo)) as terminal:
        terminal.await_text("q quit")
        terminal.press("\x03")
        assert terminal.await_end() == 130
        assert LEFT in terminal.sent
        assert terminal.is_echoing()


def test_a_live_agent_is_followed_and_its_end_is_said() -> None:
    with running_agent("--no-kubernetes") as agent, open_top(f"http://127.0.0.1:{agent.port}") as terminal:
        terminal.await_text("by cpu", "q quit")
        agent.process.kill()
        terminal.await_screen(lambda text: " ago" in text or "by cpu" not in text, "its silence")
        terminal.press("q")
        assert terminal.await_end() == 0


def test_a_viewer_is_asked_for_restarts_and_curves(demo: Path, tmp_path: Path) -> None:
    with running_viewer(demo, tmp_path / "output") as viewer, open_top(viewer.url) as terminal:
        terminal.await_text("by cpu", "restarts")
        terminal.press("r")
        terminal.await_screen(
            lambda text: "by restarts" in text and "migrator" in first_row(text), "the crash loop"
        )
        terminal.press("/cache\r\r")
        terminal.await_text("memory: newest", "peak")
        terminal.press("q")
        assert terminal.await_end() == 0


def test_without_a_screen_it_is_one_table(demo: Path) -> None:
    with OwnTerminal([*NODESCOPE, "top", str(demo)], 120, 30, {"TERM": "dumb"}) as terminal:
        assert terminal.await_end() == 0
        assert b"\x1b[?1049h" not in terminal.sent
        assert b"container" in terminal.sent


def test_study_ends_its_lines_between_words(demo: Path) -> None:
    words = [*NODESCOPE, "study", "trend", str(demo), "--container", "cache", "--metric", "memory"]
    with OwnTerminal(words, 60, 60) as terminal:
        assert terminal.await_end() == 0
        lines = terminal.sent.decode().replace("\r\n", "\n").splitlines()
    plain = [line.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, plain)) <= 60
    assert "limit 512 MiB" in " ".join(plain)
    assert "e+0" not in " ".join(plain)
