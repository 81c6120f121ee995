"""
What happens inside the virtual machine, from the first cgroup to the last check.

Run by `init` as `python -m tests.vm.guest.scenario OUT`; needs nothing but the
standard library. Everything in OUT goes home on the tape. Exit code 0 means
that all checks were made, not that they passed: their lines say that.
"""

import sys
from pathlib import Path

from tests.vm.guest import agent, checks, image, lives, pods
from tests.vm.guest.capture import write_node
from tests.vm.guest.report import Report, wait_until

START_SECONDS = 120
COMPLAINTS = ("Traceback", "Warning", " ERROR ", " WARNING ")


def main(out: Path) -> None:
    report = Report()
    report.note("first line of Python")
    processes = {container: pods.start(container) for container in pods.STANDING}
    pods.connect(processes[pods.TALKER])
    pods.start_service("cron.service", ["sleep", "9999"])
    report.note(f"started {len(pods.STANDING)} containers")
    checks.check_the_workloads(report)
    # Before the agent starts: the fixture is a node, not a node that looks at itself.
    write_node(out / "node")
    report.note("captured the node")
    process, pid = agent.start(out / "agent.log")
    ready = wait_until(lambda: agent.is_ready() or process.poll() is not None, START_SECONDS)
    report.check(
        "the agent is ready", ready and process.poll() is None, f"exit code {process.poll()}, see its log"
    )
    if process.poll() is None:
        checks.check_the_agent(report, processes, out)
        lives.check_lives(report, pid)
        if image.is_here():
            image.check(report, pid)
        (out / "status.json").write_text(agent.fetch("/status"))
        process.terminate()
        report.check("the agent ends with 0 when asked to", process.wait(30) == 0, process.returncode)
    said = (out / "agent.log").read_text(errors="replace")
    complaints = [line for line in said.splitlines() if any(word in line for word in COMPLAINTS)]
    report.check("the agent has nothing to complain about in its log", not complaints, complaints)
    if report.failed:
        for line in said.splitlines()[-20:]:
            report.note(f"agent: {line}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
