"""
What node_exporter says about itself and the moment, for dashboards that hang on it.

Only under compatible names. A dashboard's list of nodes is made from
`node_exporter_build_info`; "uptime" is `node_time_seconds` less the boot time;
`node_scrape_collector_success` has our sources under the label of its collectors.
"""

import platform
import sys
from collections.abc import Iterator, Mapping

from nodescope import __version__
from nodescope.base.frame import OK, Outcome
from nodescope.serve.prometheus_text import MetricFamily, build_labelled, build_single

# Go's word for a machine, where it differs from the kernel's.
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def build_drop_in(outcomes: Mapping[str, Outcome], at_ns: int) -> Iterator[MetricFamily]:
    machine = platform.machine()
    build = (
        ("branch", "nodescope"),
        ("goarch", MACHINES.get(machine, machine)),
        ("goos", sys.platform),
        ("goversion", ""),
        ("revision", ""),
        ("tags", ""),
        ("version", __version__),
    )
    sentence = (
        "nodescope's own build, under the name that dashboards of node_exporter list nodes by; always 1."
    )
    yield MetricFamily("node_exporter_build_info", sentence, (("", build, 1.0),))
    yield build_single("node_time_seconds", "The node's clock, as epoch seconds.", at_ns / 1e9)
    names = sorted(outcomes)
    cost = {name: outcomes[name].cost_seconds for name in names}
    sentence = "CPU time of a source's last reading."
    yield build_labelled("node_scrape_collector_duration_seconds", sentence, "collector", cost)
    success = {name: outcomes[name].state == OK.state for name in names}
    sentence = "1 when a source's last reading was ok."
    yield build_labelled("node_scrape_collector_success", sentence, "collector", success)
