"""Wrong usage gets one clear line and exit code 2; right usage is honoured in its order."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from tests.integration.agents import free_port, run_nodescope, running_agent

from nodescope.cli import main

pytestmark = pytest.mark.real


def refused(*words: str, environment: Mapping[str, str] | None = None) -> str:
    """The one line on stderr of a command that must leave with 2."""
    done = run_nodescope(*words, environment=environment)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def refused_here(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The same for what `nodescope settings` refuses, too, without a process for each."""
    assert main(["settings", *words]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    lines = written.err.strip().splitlines()
    assert len(lines) == 1, written.err
    return lines[0]


@pytest.mark.parametrize("command", ["agent", "up"])
def test_a_port_in_use_is_one_clear_line(command: str) -> None:
    """It names the address and the remedy."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused(command, "--port", str(port))
        assert f"127.0.0.1:{port} is in use" in line
        assert "--port" in line


def test_a_wrong_word_is_answered_with_the_nearest() -> None:
    assert 'did you mean "agent"?' in refused("agnet")
    assert 'did you mean "--token-file"?' in refused("agent", "--token-fil3", "x")
    assert 'did you mean "--interval"?' in refused("agent", "--intervall=1s")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--interval", "soon"), ("interval_seconds", "'soon'", "500ms")),
        (("--interval", "0"), ("interval_seconds", "at least 0.1")),
        (("--ring", "5"), ("ring_seconds", "at least 30")),
        (("--ring-bytes", "12parsecs"), ("ring_bytes", "64MiB")),
        (("--names", "mine"), ("names", "compatible", "own")),
    ],
    ids=lambda value: value[0],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: tuple[str, ...]
) -> None:
    line = refused_here(capsys, *words)
    assert [word for word in named if word not in line] == [], line


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--listen", "9100"), ("listen", "HOST:PORT")),
        (("--listen", "127.0.0.1:70000"), ("listen", "HOST:PORT")),
        (("--sources-exclude", "memry"), ("sources_exclude", 'did you mean "memory"?')),
        (("--label", "no-equals"), ("label", "key=value")),
        (("--token-file", "/nowhere/token"), ("token_file", "/nowhere/token")),
        (("--tls-cert", "/nowhere/cert"), ("tls_cert", "tls_key")),
        (("--tls-client-ca", "/nowhere/ca"), ("tls_client_ca", "tls_cert")),
        (("--root", "/nowhere"), ("root", "/nowhere")),
        (("--port", "99999"), ("listen", "99999")),
        (("--metrics-path", "metrics"), ("metrics_path", "'metrics'")),
        (("--metrics-path", "/status"), ("metrics_path", "'/status'")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) and value[0].startswith("--") else "",
)
def test_a_wrong_value_is_refused_by_name(words: tuple[str, ...], named: tuple[str, ...]) -> None:
    """The line has the setting's name and what is accepted."""
    line = refused("agent", *words)
    assert [word for word in named if word not in line] == [], line


def test_a_wrong_setting_in_the_environment_is_refused_with_the_nearest() -> None:
    line = refused("agent", environment={"NODESCOPE_RING_SECOND": "60"})
    assert "NODESCOPE_RING_SECOND" in line
    assert 'did you mean "ring_seconds"?' in line
    line = refused("agent", environment={"NODESCOPE_RING_SECONDS": "long"})
    assert "NODESCOPE_RING_SECONDS" in line
    assert "EXPORTER_PORT" in refused("agent", environment={"EXPORTER_PORT": "none"})


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("ring_second = 60", ("ring_second", 'did you mean "ring_seconds"?')),
        ("[process]\ntpo = 3", ("process_tpo", 'did you mean "process_top"?')),
        ("ring_seconds = true", ("ring_seconds", "True")),
        ("ring_seconds = [60]", ("ring_seconds",)),
        ("process_top = 0", ("process_top", "at least 1")),
        ("ring_seconds = ", ("not TOML",)),
        ('pss = "perhaps"', ("pss", "true or false")),
    ],
)
def test_a_wrong_settings_file_is_refused_by_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, named: tuple[str, ...]
) -> None:
    """The line has the file, the key, and what is accepted."""
    path = tmp_path / "settings.toml"
    path.write_text(content)
    line = refused_here(capsys, "--config", str(path))
    assert [word for word in (str(path), *named) if word not in line] == [], line


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.toml") in refused("agent", "--config", str(tmp_path / "none.toml"))


# -- order of precedence -------------------------------------------------------------


def test_flag_then_ours_then_the_seeds_then_toml_then_default(tmp_path: Path) -> None:
    """Taking the strongest away, the next one shows, each with its origin."""
    path = tmp_path / "settings.toml"
    path.write_text('node = "from-toml"\n')
    steps: list[tuple[str, str, tuple[str, ...], dict[str, str]]] = [
        (
            "from-flag",
            "command line",
            ("--node", "from-flag", "--config", str(path)),
            {"NODESCOPE_NODE": "from-ours", "NODE_NAME": "from-seed"},
        ),
        (
            "from-ours",
            "NODESCOPE_NODE",
            ("--config", str(path)),
            {"NODESCOPE_NODE": "from-ours", "NODE_NAME": "from-seed"},
        ),
        ("from-seed", "NODE_NAME", ("--config", str(path)), {"NODE_NAME": "from-seed"}),
        ("from-toml", str(path), ("--config", str(path)), {}),
        ("-", "default", (), {}),
    ]
    for value, origin, flags, environment in steps:
        done = run_nodescope("settings", *flags, environment=environment)
        line = next(line for line in done.stdout.splitlines() if line.startswith("node "))
        assert re.split(r"  +", line)[:3] == ["node", value, origin]


def test_the_seeds_variables_are_honoured_by_a_running_agent() -> None:
    """One more listener, another path, a name, a level: all at once."""
    extra = free_port()
    environment = {
        "EXPORTER_PORT": str(extra),
        "NODE_NAME": "worker-7",
        "METRICS_PATH": "/gpu/metrics",
        "LOG_LEVEL": "ERROR",
    }
    with running_agent(environment=environment) as agent:
        for port in (agent.port, extra):
            for path in ("/metrics", "/gpu/metrics"):
                answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=20)
                assert answer.status_code == 200, (port, path)
                assert answer.text.startswith("# HELP")
        assert agent.get("/metrics?window_seconds=5").json()["node"] == "worker-7"
        assert agent.get("/gpu/metrics?window_seconds=5").json()["node"] == "worker-7"
        settings = agent.get("/status").json()["settings"]
        assert settings["log_level"] == {"value": "error", "origin": "LOG_LEVEL"}
        assert settings["node"] == {"value": "worker-7", "origin": "NODE_NAME"}
        assert settings["metrics_path"] == {"value": "/gpu/metrics", "origin": "METRICS_PATH"}
        assert "EXPORTER_PORT" in settings["listen"]["origin"]
        assert agent.printed() == ""


def test_our_variable_beats_the_seeds_on_a_running_agent() -> None:
    environment = {"NODE_NAME": "seed", "NODESCOPE_NODE": "ours", "LOG_LEVEL": "error"}
    with running_agent("--log-level", "info", environment=environment) as agent:
        assert agent.get("/status").json()["node"] == "ours"
        assert "agent started" in agent.printed()
        assert "reader=" in agent.printed()


@pytest.mark.parametrize("command", ["up", "sample", "sources"])
def test_a_quiet_command_still_honours_the_level_it_is_given(command: str) -> None:
    """A command's own default is the weakest of all: the environment beats it."""
    line = refused(command, environment={"LOG_LEVEL": "shouting"})
    assert "LOG_LEVEL" in line


def test_up_is_as_loud_as_the_environment_says() -> None:
    """Its own default, warning, is the weakest of all."""
    with running_agent(command="up", environment={"NODESCOPE_LOG_LEVEL": "info"}) as agent:
        level = agent.get("/status").json()["settings"]["log_level"]
        assert level == {"value": "info", "origin": "NODESCOPE_LOG_LEVEL"}
