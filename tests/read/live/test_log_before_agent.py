"""Where a log beside the archive has what an agent would say, the agent is not waited for."""

from pathlib import Path

from tests.keep.frames import SECOND_NS, frames, write_log

from nodescope.keep.folder import DataFolder
from nodescope.read.live.follow import AGAIN_NS, QUIET_NS, AgentFeed, FrameStream, LogFeed

RUN = "run1"


def make_log(path: Path, count: int) -> LogFeed:
    """A log that grows is written anew, longer."""
    write_log(DataFolder(path), frames(count), RUN)
    return LogFeed(path)


def make_agent() -> AgentFeed:
    """One that was asked once, and told its run."""
    stream = FrameStream("n1")
    stream.add(frames(3))
    return AgentFeed("http://127.0.0.1:1", _streams={RUN: stream})


def test_an_agent_is_not_asked_while_the_log_of_its_run_grows(tmp_path: Path) -> None:
    log, agent = make_log(tmp_path, 3), make_agent()
    for second in range(5):
        make_log(tmp_path, 3 + second)
        log.poll()
        assert not agent.is_due([log], second * SECOND_NS)
    # Its frames are the log's: they are not held twice.
    assert [len(one.frames) for one in agent.streams().values()] == [0]


def test_an_agent_is_asked_when_its_log_falls_silent(tmp_path: Path) -> None:
    log, agent = make_log(tmp_path, 3), make_agent()
    log.poll()
    assert not agent.is_due([log], 0)
    assert not agent.is_due([log], QUIET_NS - 1)
    assert agent.is_due([log], QUIET_NS)


def test_a_log_of_another_run_or_none_is_no_reason_not_to_ask(tmp_path: Path) -> None:
    log = make_log(tmp_path, 3)
    log.poll()
    other = AgentFeed("http://127.0.0.1:1", _streams={"run2": FrameStream("n1")})
    assert other.is_due([log], 0)
    assert make_agent().is_due([], 0)
    assert AgentFeed("http://127.0.0.1:1").is_due([log], 0)


def test_an_agent_that_did_not_answer_holds_up_few_looks_where_there_is_a_log(tmp_path: Path) -> None:
    log = make_log(tmp_path, 3)
    log.poll()
    agent = AgentFeed("http://127.0.0.1:1")
    assert agent.is_due([log], AGAIN_NS)
    agent.reason = "did not answer"
    assert not agent.is_due([log], 2 * AGAIN_NS - 1)
    assert agent.is_due([log], 2 * AGAIN_NS)
    # Without a log every look asks: nothing else would tell.
    assert agent.is_due([], 2 * AGAIN_NS + 1)


def test_a_log_says_that_it_has_grown_and_a_torn_one_does_not_for_ever(tmp_path: Path) -> None:
    log = make_log(tmp_path, 3)
    assert not log.has_grown(), "nothing was followed yet"
    log.poll()
    assert not log.has_grown()
    path = make_longer(tmp_path)
    assert log.has_grown()
    log.poll()
    path.write_bytes(path.read_bytes()[:-5])
    assert log.has_grown()
    log.poll()
    assert not log.has_grown(), "a record that was torn is no news"


def make_longer(path: Path) -> Path:
    return write_log(DataFolder(path), frames(5), RUN)
