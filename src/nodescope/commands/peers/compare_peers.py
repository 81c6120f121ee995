"""nodescope compare-peers: which series of node_exporter or cAdvisor the agent has, and whether they agree."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import urlsplit

from nodescope.base.errors import HttpFailed, RequestRejected
from nodescope.serve.http_client import HttpClient, parse_endpoint
from nodescope.serve.prometheus_parse import TextFamily, parse_text
from nodescope.use.peers.compare import Comparison, compare, render

EXAMPLE = """example:
  nodescope compare-peers http://127.0.0.1:9101/metrics
  nodescope compare-peers --agent http://127.0.0.1:9100 http://127.0.0.1:9101/metrics http://127.0.0.1:8080/metrics
"""
AGENT = "http://127.0.0.1:9100"
ANSWER_SECONDS = 20.0
ANSWER_BYTES = 256 * 2**20
# A node with 5,000 containers has some 250,000 series.
MOST_SERIES = 1_000_000
SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("peers", nargs="+", metavar="URL", help="where an exporter of the same node answers")
    parser.add_argument("--agent", default=AGENT, metavar="URL", help=f"the agent; {AGENT} unless given")
    parser.add_argument("--all", action="store_true", help=f"more than {SHOWN} lines of a kind")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    found = {url: ask(options.agent, url) for url in options.peers}
    if options.json:
        json.dump({url: asdict(one) for url, one in found.items()}, sys.stdout, indent=1)
        sys.stdout.write("\n")
        return 0
    most = MOST_SERIES if options.all else SHOWN
    for url, one in found.items():
        sys.stdout.write("\n".join(render(url, one, most)) + "\n")
    return 0


def ask(agent: str, peer: str) -> Comparison:
    """Theirs between two of ours, so that a counter of theirs lies between ours."""
    before = scrape(agent)
    theirs = scrape(peer)
    return compare(before, theirs, scrape(agent))


def scrape(url: str) -> Mapping[str, TextFamily]:
    # The path of the URL is the endpoint's.
    target = "" if urlsplit(url).path.rstrip("/") else "/metrics"
    client = HttpClient(parse_endpoint(url), ANSWER_SECONDS, ANSWER_BYTES)
    try:
        answer = client.read(target)
    except (HttpFailed, OSError) as error:
        raise RequestRejected(f"{url}: no metrics there: {error}") from error
    finally:
        client.close()
    return parse_text(answer.body.decode("utf-8", "replace"), has_timestamps=True, most=MOST_SERIES)
