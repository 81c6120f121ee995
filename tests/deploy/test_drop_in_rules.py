"""
Alerts about nodes and containers, as node-mixin and kubernetes-mixin name them, on what we publish.

The series are a scrape of fixture nodes, with the labels that the shipped recipe sets. An alert's condition is made
by changing a few values; promtool must fire it then, and not before. The conditions are those of the mixins, in
short: what is tested is that names, labels and units are what such rules ask for.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.conftest import need_tool
from tests.integration.peers.recipe import read_endpoint
from tests.samples import find_samples
from tests.support import FixtureNode

NODES = ("board", "cgroup2-systemd")
NODE, KUBELET = 'job="node-exporter"', 'job="kubelet",metrics_path="/metrics/cadvisor"'


@dataclass(frozen=True)
class Alert:
    """A rule, and the values under which its condition holds."""

    name: str
    expr: str
    made: tuple[tuple[str, str], ...]
    """Series by the beginning of their text, with values as promtool writes them."""


ALERTS = (
    Alert(
        "NodeNetworkReceiveErrs",
        f"rate(node_network_receive_errs_total{{{NODE}}}[2m]) / rate(node_network_receive_packets_total{{{NODE}}}[2m]) > 0.01",
        (("node_network_receive_errs_total", "0+5x60"), ("node_network_receive_packets_total", "0+100x60")),
    ),
    Alert(
        "NodeHighNumberConntrackEntriesUsed",
        f"node_nf_conntrack_entries{{{NODE}}} / node_nf_conntrack_entries_limit > 0.75",
        (("node_nf_conntrack_entries ", "250000x60"),),
    ),
    Alert(
        "NodeTextFileCollectorScrapeError",
        f"node_textfile_scrape_error{{{NODE}}} == 1",
        (("node_textfile_scrape_error", "1x60"),),
    ),
    Alert(
        "NodeClockSkewDetected",
        f"node_timex_offset_seconds{{{NODE}}} > 0.05 and deriv(node_timex_offset_seconds{{{NODE}}}[5m]) >= 0",
        (("node_timex_offset_seconds", "0.1+0.01x60"),),
    ),
    Alert(
        "NodeClockNotSynchronising",
        f"min_over_time(node_timex_sync_status{{{NODE}}}[5m]) == 0 and node_timex_maxerror_seconds{{{NODE}}} >= 16",
        (("node_timex_sync_status", "0x60"), ("node_timex_maxerror_seconds", "16x60")),
    ),
    Alert(
        "NodeRAIDDegraded",
        f'node_md_disks_required{{{NODE},device="md7"}} - ignoring (state) (node_md_disks{{state="active",{NODE}}}) > 0',
        (('node_md_disks{device="md7",state="active"}', "1x60"),),
    ),
    Alert(
        "NodeRAIDDiskFailure",
        f'node_md_disks{{state="failed",{NODE},device="md7"}} > 0',
        (('node_md_disks{device="md7",state="failed"}', "1x60"),),
    ),
    Alert(
        "NodeBondingDegraded",
        f"(node_bonding_slaves{{{NODE}}} - node_bonding_active{{{NODE}}}) > 1",
        (("node_bonding_active", "0x60"),),
    ),
    Alert(
        "NodeFileDescriptorLimit",
        f"node_filefd_allocated{{{NODE}}} * 100 / node_filefd_maximum{{{NODE}}} > 70",
        (("node_filefd_allocated", "90x60"), ("node_filefd_maximum", "100x60")),
    ),
    Alert(
        "NodeNetworkInterfaceFlapping",
        f'changes(node_network_up{{{NODE},device!~"veth.+"}}[10m]) > 2',
        (('node_network_up{device="eth0"}', "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1"),),
    ),
    Alert(
        "NodeFilesystemAlmostOutOfSpace",
        f'node_filesystem_avail_bytes{{{NODE},fstype!="",mountpoint="/"}} / node_filesystem_size_bytes{{{NODE}}} * 100 < 3'
        f" and node_filesystem_readonly{{{NODE}}} == 0",
        (('node_filesystem_avail_bytes{device="/dev/nvme0n1p1"', "1000x60"),),
    ),
    Alert(
        "NodeFilesystemSpaceFillingUp",
        f'node_filesystem_avail_bytes{{{NODE},fstype!="",mountpoint="/"}} / node_filesystem_size_bytes{{{NODE}}} * 100 < 40'
        f' and predict_linear(node_filesystem_avail_bytes{{{NODE},fstype!="",mountpoint="/"}}[6h], 24*60*60) < 0'
        f" and node_filesystem_readonly{{{NODE}}} == 0",
        (('node_filesystem_avail_bytes{device="/dev/nvme0n1p1"', "20000000000-200000000x60"),),
    ),
    Alert(
        "NodeFilesystemAlmostOutOfFiles",
        f'node_filesystem_files_free{{{NODE},fstype!="",mountpoint="/"}} / node_filesystem_files{{{NODE}}} * 100 < 5'
        f" and node_filesystem_readonly{{{NODE}}} == 0",
        (('node_filesystem_files_free{device="/dev/nvme0n1p1"', "100x60"),),
    ),
    Alert(
        "NodeFilesystemFilesFillingUp",
        f'node_filesystem_files_free{{{NODE},fstype!="",mountpoint="/"}} / node_filesystem_files{{{NODE}}} * 100 < 40'
        f' and predict_linear(node_filesystem_files_free{{{NODE},fstype!="",mountpoint="/"}}[6h], 24*60*60) < 0'
        f" and node_filesystem_readonly{{{NODE}}} == 0",
        (('node_filesystem_files_free{device="/dev/nvme0n1p1"', "1000000-10000x60"),),
    ),
    Alert(
        "NodeNetworkTransmitErrs",
        f"rate(node_network_transmit_errs_total{{{NODE}}}[2m]) / rate(node_network_transmit_packets_total{{{NODE}}}[2m]) > 0.01",
        (("node_network_transmit_errs_total", "0+5x60"), ("node_network_transmit_packets_total", "0+100x60")),
    ),
    Alert(
        "NodeCPUHighUsage",
        f'sum without (mode) (avg without (cpu) (rate(node_cpu_seconds_total{{{NODE},mode!~"idle|iowait"}}[2m]))) * 100 > 90',
        tuple((f'node_cpu_seconds_total{{cpu="{core}",mode="user"', "0+60x60") for core in range(4)),
    ),
    Alert(
        "NodeMemoryHighUtilization",
        f"100 - (node_memory_MemAvailable_bytes{{{NODE}}} / node_memory_MemTotal_bytes{{{NODE}}} * 100) > 90",
        (("node_memory_MemAvailable_bytes", "1000000x60"),),
    ),
    Alert(
        "NodeDiskIOSaturation",
        f'rate(node_disk_io_time_weighted_seconds_total{{{NODE},device=~"nvme.+|sd.+"}}[5m]) > 10',
        (("node_disk_io_time_weighted_seconds_total", "0+1200x60"),),
    ),
    Alert(
        "NodeSystemdServiceFailed",
        f'node_systemd_unit_state{{{NODE},state="failed"}} == 1',
        (('node_systemd_unit_state{name="backup.service",type="simple",state="failed"}', "1x60"),),
    ),
    Alert(
        "NodeSystemdServiceCrashlooping",
        f"increase(node_systemd_service_restart_total{{{NODE}}}[5m]) > 2",
        (('node_systemd_service_restart_total{name="backup.service"}', "0+1x60"),),
    ),
    Alert(
        "NodeMemoryMajorPagesFaults",
        f"rate(node_vmstat_pgmajfault{{{NODE}}}[5m]) > 500",
        (("node_vmstat_pgmajfault", "0+60000x60"),),
    ),
    Alert(
        "NodeSystemSaturation",
        f'node_load1{{{NODE}}} / count without (cpu, mode) (node_cpu_seconds_total{{{NODE},mode="idle"}}) > 2',
        (("node_load1 ", "40x60"),),
    ),
    Alert(
        "CPUThrottlingHigh",
        f'sum(increase(container_cpu_cfs_throttled_periods_total{{container!="",{KUBELET}}}[5m])) by (container, pod, namespace)'
        f' / sum(increase(container_cpu_cfs_periods_total{{container!="",{KUBELET}}}[5m])) by (container, pod, namespace) > 0.25',
        (
            ('container_cpu_cfs_throttled_periods_total{namespace="shop",pod="web', "0+50x60"),
            ('container_cpu_cfs_periods_total{namespace="shop",pod="web', "0+100x60"),
        ),
    ),
    # A pod with one container that has no limit: with +Inf for "no limit" this could never fire.
    Alert(
        "PodMemoryNearLimit",
        f'sum by (namespace, pod) (container_memory_working_set_bytes{{image!="",{KUBELET}}})'
        f" / sum by (namespace, pod) (container_spec_memory_limit_bytes{{{KUBELET}}} > 0) > 0.95",
        (('container_memory_working_set_bytes{namespace="shop",pod="web', "260000000x60"),),
    ),
)


def relabel(line: str) -> str:
    """The series with the labels that the recipe gives it."""
    name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})?", line.rpartition(" ")[0]).groups()  # type: ignore[union-attr]
    given = {"job": "nodescope", "instance": "worker-1", "node": "worker-1"}
    for rule in read_endpoint()["metricRelabelings"]:
        if re.fullmatch(rule["regex"], name):
            given[rule["targetLabel"]] = rule["replacement"]
    added = ",".join(f'{key}="{value}"' for key, value in given.items())
    return f"{name}{{{','.join(part for part in (labels, added) if part)}}}"


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines of a scrape of each node."""
    found = {}
    for name in NODES:
        node = FixtureNode(name, tmp_path_factory.mktemp(name))
        node.run()
        text = node.parts.scrape.render((), openmetrics=False)
        found[name] = [line for line in text.splitlines() if not line.startswith("#")]
        node.close()
    return found


def list_series(lines: list[str], alert: Alert, *, made: bool) -> list[dict[str, str]]:
    """What the rule selects, each with its value or the one that makes the condition."""
    names = set(re.findall(r"\b(?:node|container)_\w+", alert.expr))
    series = []
    for line in lines:
        if line.partition("{")[0].partition(" ")[0] not in names:
            continue
        value = line.rpartition(" ")[2]
        changed = [values for start, values in alert.made if line.startswith(start)]
        values = changed[0] if made and changed else f"{value}x60" if value not in ("+Inf", "NaN") else "_x60"
        series.append({"series": relabel(line), "values": values})
    return series


def ask_promtool(folder: Path, alert: Alert, series: list[dict[str, str]]) -> str:
    rules = {"groups": [{"name": "drop-in", "rules": [{"alert": alert.name, "expr": alert.expr}]}]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    case: dict[str, Any] = {"eval_time": "12m", "alertname": alert.name, "exp_alerts": []}
    test = {"interval": "1m", "input_series": series, "alert_rule_test": [case]}
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(json.dumps(content))
    done = subprocess.run(
        [need_tool("promtool"), "test", "rules", "test.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_every_alert_about_nodes_and_containers_is_tested() -> None:
    """Of the mixins' rules, as the lists of other people's queries have them."""
    lists = find_samples("foreign")
    rules = "".join(path.read_text() for path in sorted(lists.glob("*-rules.txt")))
    named = set(re.findall(r"^alert (\w+)\t(?=.*(?:node|container)_)", rules, re.MULTILINE))
    assert len(named) > 20
    assert named <= {alert.name for alert in ALERTS}


@pytest.mark.real
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert.name))
def test_an_alert_fires_when_its_condition_is_made_and_not_before(
    alert: Alert, scrapes: dict[str, list[str]], tmp_path: Path
) -> None:
    lines = next(
        found for found in scrapes.values() if any(line.startswith(alert.made[0][0]) for line in found)
    )
    quiet = ask_promtool(tmp_path, alert, list_series(lines, alert, made=False))
    assert "SUCCESS" in quiet, quiet
    fired = ask_promtool(tmp_path, alert, list_series(lines, alert, made=True))
    assert "FAILED" in fired, fired
    assert f'alertname="{alert.name}"' in fired, fired
