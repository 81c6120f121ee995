"""Questions as people put them, in other words and another order than the table has, lead to what answers them."""

import pytest

from nodescope.base.metric_names import PLAIN
from nodescope.use.answers.questions import QUESTIONS, find_unknown_node, understand
from nodescope.use.mcp.protocol.argument import check_arguments
from nodescope.use.mcp.tools import TOOLS as ALL_TOOLS

TOOLS = [
    "what_is_wrong",
    "list_nodes",
    "top_containers",
    "list_containers",
    "summarize_container",
    "analyze_container",
    "explain_incident",
    "compare_windows",
    "find_metrics",
    "list_metrics",
    "scan",
    "rightsize",
    "summarize_node",
]
CONTAINERS = ("catalog", "checkout-api", "node", "memory-cache", "redis")

ASKED = [
    # leaks and growth
    ("Is anything leaking?", "scan", "memory"),
    ("does some container have a memory leak", "scan", "memory"),
    ("which pods keep growing in RAM", "scan", "memory"),
    ("whose heap goes up all the time?", "scan", "memory"),
    ("is the CPU load of anyone climbing", "scan", "cpu"),
    ("does catalog leak", "analyze_container", "memory"),
    ("is the footprint of checkout-api rising?", "analyze_container", "memory"),
    ("when will redis run out of memory", "analyze_container", "memory"),
    ("is redis going to be OOM killed", "summarize_container", ""),
    ("how long until something is out of memory?", "scan", "memory"),
    ("is anything about to die?", "what_is_wrong", ""),
    ("which pods are dying?", "explain_incident", ""),
    # clocks
    ("is any clock wrong?", "list_nodes", ""),
    ("do the nodes have clock skew", "list_nodes", ""),
    # what there is
    ("what is running here?", "list_containers", ""),
    ("what are the top 3 memory hogs?", "top_containers", "memory"),
    ("who steals CPU from checkout-api?", "explain_incident", ""),
    ("what changed with redis after its restart?", "analyze_container", "cpu"),
    # sizes
    ("which containers do almost nothing?", "rightsize", ""),
    ("right-size my workloads", "rightsize", ""),
    ("who is over-provisioned?", "rightsize", ""),
    ("Are our requests too generous", "rightsize", ""),
    ("what limits would be right for catalog", "rightsize", ""),
    ("which pods are undersized", "rightsize", ""),
    ("recommend requests", "rightsize", ""),
    ("where do we waste cores", "rightsize", ""),
    ("what sits idle here", "rightsize", ""),
    ("how much could we save", "rightsize", ""),
    ("anything doing nothing?", "rightsize", ""),
    ("are there idle GPUs", "top_containers", "gpu_utilization"),
    # neighbours and slowness
    ("who is the noisy neighbor", "explain_incident", ""),
    ("is something hogging this machine", "explain_incident", ""),
    ("which pod starves the others?", "explain_incident", ""),
    ("why is checkout-api slow", "explain_incident", ""),
    ("what caused the latency", "explain_incident", ""),
    ("who is slow", "top_containers", "pressure_cpu"),
    ("which containers wait for a processor", "top_containers", "pressure_cpu"),
    ("who waits on disk I/O", "top_containers", "pressure_io"),
    ("who is being throttled", "top_containers", "cpu_throttled"),
    ("is anyone held back by a CPU quota", "top_containers", "cpu_throttled"),
    # spikes, repetition, oddities
    ("anything that spikes?", "scan", "cpu"),
    ("are there bursts of memory", "scan", "memory"),
    ("does anything repeat itself", "scan", "cpu"),
    ("is there a cron-like pattern", "scan", "cpu"),
    ("does redis peak regularly", "analyze_container", "cpu"),
    ("anything strange right now", "scan", "cpu"),
    ("show me outliers", "scan", "cpu"),
    ("who moves together with catalog", "analyze_container", "cpu"),
    # ends
    ("why was my pod evicted", "top_containers", "memory_working_set"),
    ("who got OOM killed", "top_containers", "oom_kills"),
    ("which container went out of memory", "top_containers", "oom_kills"),
    ("was anything killed for memory", "top_containers", "oom_kills"),
    ("what is in a crash loop", "list_containers", ""),
    ("who restarts the most", "list_containers", ""),
    ("what died last night", "explain_incident", ""),
    # changes
    ("what changed?", "explain_incident", ""),
    ("what happened at 14:05", "explain_incident", ""),
    ("did something break", "explain_incident", ""),
    ("who is to blame for the outage", "explain_incident", ""),
    ("compare now against yesterday", "compare_windows", ""),
    ("is redis using more cpu than yesterday", "compare_windows", ""),
    ("does redis use as much memory as yesterday", "compare_windows", ""),
    ("who used the most cpu yesterday", "top_containers", "cpu"),
    ("what is the p95 cpu of redis", "analyze_container", "cpu"),
    ("peak memory of redis", "analyze_container", "memory"),
    ("least used containers", "top_containers", "cpu"),
    ("who uses the least memory", "top_containers", "memory"),
    ("do we have room for another 4 cores", "summarize_node", ""),
    ("network hogs", "top_containers", "network_receive"),
    ("who talks the most", "top_containers", "network_receive"),
    ("show me the noisiest pod", "explain_incident", ""),
    ("was the agent down", "list_nodes", ""),
    ("is any data missing", "list_nodes", ""),
    ("how does catalog differ from before", "compare_windows", ""),
    ("did the new release make it worse", "compare_windows", ""),
    ("what is different since the rollout", "compare_windows", ""),
    # the node
    ("is the node full", "summarize_node", ""),
    ("how is this machine doing", "summarize_node", ""),
    ("is there room left on the host", "summarize_node", ""),
    ("is the server overloaded", "summarize_node", ""),
    ("which nodes are there", "list_nodes", ""),
    # who has the most
    ("who uses the most memory", "top_containers", "memory"),
    ("biggest CPU consumers", "top_containers", "cpu"),
    ("who burns cores", "top_containers", "cpu"),
    ("top", "top_containers", "cpu"),
    ("who writes to disk", "top_containers", "disk_write"),
    ("heaviest network traffic", "top_containers", "network_receive"),
    ("who downloads so much", "top_containers", "network_receive"),
    ("which GPUs are busy", "top_containers", "gpu_utilization"),
    ("how much VRAM memory is used", "top_containers", "gpu_memory"),
    ("who is near its memory limit", "top_containers", "memory_limit_share"),
    ("who is close to their CPU limit", "top_containers", "cpu_limit_share"),
    ("too many threads?", "top_containers", "threads"),
    # what there is
    ("list all pods", "list_containers", ""),
    ("which metrics are collected", "list_metrics", ""),
    ("how is checkout-api doing", "summarize_container", ""),
    ("redis", "summarize_container", ""),
    # up and down, sending, and other words for the same
    ("Does the CPU of catalog go up and down regularly?", "analyze_container", "cpu"),
    ("does the memory of redis go back and forth", "analyze_container", "memory"),
    ("whose load comes and goes again and again?", "scan", "cpu"),
    ("does anything oscillate here", "scan", "cpu"),
    ("is the heap of catalog a sawtooth", "analyze_container", "memory"),
    ("Which pod sends the most over the network?", "top_containers", "network_transmit"),
    ("who uploads all this data", "top_containers", "network_transmit"),
    ("biggest egress", "top_containers", "network_transmit"),
    ("outgoing traffic per workload", "top_containers", "network_transmit"),
    ("does anybody send more and more, growing", "scan", "network_transmit"),
    ("who reads the most from disk", "top_containers", "disk_read"),
    ("which GPU draws the most power", "top_containers", "gpu_power"),
    # what went wrong, and who did it
    ("Who caused the OOM?", "explain_incident", ""),
    ("which jobs failed?", "explain_incident", ""),
    ("what exited with an error last night", "explain_incident", ""),
    ("did a pod disappear", "explain_incident", ""),
    ("who stole the CPU from checkout-api", "explain_incident", ""),
    ("is redis bullied by somebody", "explain_incident", ""),
    ("why was catalog slow at 14:05?", "explain_incident", ""),
    ("what changed since yesterday?", "compare_windows", ""),
    ("did the deploy make it worse?", "compare_windows", ""),
    ("any regression after we rolled out", "compare_windows", ""),
    # what is wrong now
    ("what is wrong", "what_is_wrong", ""),
    ("What's wrong?", "what_is_wrong", ""),
    ("is anything wrong right now", "what_is_wrong", ""),
    ("is something broken", "what_is_wrong", ""),
    ("are there any problems?", "what_is_wrong", ""),
    ("what's the problem here", "what_is_wrong", ""),
    ("which issues do you see", "what_is_wrong", ""),
    ("are we in trouble", "what_is_wrong", ""),
    ("any alerts?", "what_is_wrong", ""),
    ("which alarms are firing", "what_is_wrong", ""),
    ("why was I paged", "what_is_wrong", ""),
    ("what did the watcher find?", "what_is_wrong", ""),
    ("show me all findings", "what_is_wrong", ""),
    ("what needs my attention", "what_is_wrong", ""),
    ("what should I look at first?", "what_is_wrong", ""),
    ("where do I start first", "what_is_wrong", ""),
    ("should I worry about anything", "what_is_wrong", ""),
    ("what should be fixed", "what_is_wrong", ""),
    ("is everything ok?", "what_is_wrong", ""),
    ("are all pods healthy", "what_is_wrong", ""),
    ("are all the nodes fine", "what_is_wrong", ""),
    ("is something not working", "what_is_wrong", ""),
    ("is anything on fire", "what_is_wrong", ""),
    ("how bad is it", "what_is_wrong", ""),
    ("anything critical or urgent?", "what_is_wrong", ""),
    ("which nodes are sick", "what_is_wrong", ""),
    ("which host is in bad shape", "what_is_wrong", ""),
    ("memory problems?", "what_is_wrong", ""),
    ("is anything about to crash", "what_is_wrong", ""),
    ("what will fail next, and how soon", "what_is_wrong", ""),
    ("will something break soon?", "what_is_wrong", ""),
    # of one, and of what is over: who did it
    ("what is wrong with redis", "explain_incident", ""),
    ("what went wrong?", "explain_incident", ""),
    ("what caused the problem", "explain_incident", ""),
    ("what was wrong at 14:05", "explain_incident", ""),
    ("were there problems last night?", "explain_incident", ""),
    ("any issues in the last 3 hours", "explain_incident", ""),
    ("will redis die soon", "summarize_container", ""),
    # words of the same kind that ask for something else
    ("who is the worst CPU consumer", "top_containers", "cpu"),
    ("is the clock of a node wrong", "list_nodes", ""),
    ("is there a problem with throttling", "top_containers", "cpu_throttled"),
    ("is there a leak problem", "scan", "memory"),
    ("did the deploy cause problems", "compare_windows", ""),
    # is there room
    ("is there enough disk space", "summarize_node", ""),
    ("which pod fills the disk", "top_containers", "disk_write"),
    ("would another pod fit on this node", "summarize_node", ""),
    ("how busy is the host", "summarize_node", ""),
    ("what runs idle?", "rightsize", ""),
    ("can I scale down anything", "rightsize", ""),
    # of one
    ("how much memory does redis use", "analyze_container", "memory"),
    ("is checkout-api held back", "analyze_container", "cpu_throttled"),
    ("how many pods run here", "list_containers", ""),
    ("is catalog healthy", "summarize_container", ""),
    ("does redis have spikes of memory", "analyze_container", "memory"),
    # what should be, and not what is
    ("what should I set the limit of catalog to?", "rightsize", ""),
    ("what should the memory limit of redis be", "rightsize", ""),
    ("how many cores should I give to checkout-api", "rightsize", ""),
    ("how much memory does catalog need", "rightsize", ""),
    ("suggest limits for all deployments", "rightsize", ""),
    ("is the limit of catalog too low", "rightsize", ""),
    ("do we have too much headroom", "rightsize", ""),
    ("bigger limit for redis?", "rightsize", ""),
    ("where is my money going", "rightsize", ""),
    ("who needs the most memory", "top_containers", "memory"),
    ("is redis near its limit", "analyze_container", "memory_limit_share"),
    # why it ended
    ("why did catalog restart", "explain_incident", ""),
    ("why does catalog keep crashing", "explain_incident", ""),
    ("what made the p99 go up at 10:15", "explain_incident", ""),
    # what is short
    ("is checkout-api CPU bound", "summarize_container", ""),
    ("what limits catalog", "summarize_container", ""),
    ("what is the bottleneck", "summarize_node", ""),
    ("which process uses most CPU", "top_containers", "cpu"),
    ("which pod should I move to another node", "rightsize", ""),
    ("are the nodes unbalanced?", "rightsize", ""),
    # the whole
    ("how is the cluster", "summarize_node", ""),
    ("which nodes do I have", "list_nodes", ""),
    ("what runs on this node", "list_containers", ""),
    ("anything I should know?", "what_is_wrong", ""),
]


@pytest.mark.parametrize(("text", "tool", "metric"), ASKED, ids=[one[0] for one in ASKED])
def test_a_question_leads_to_what_answers_it(text: str, tool: str, metric: str) -> None:
    found = understand(text, TOOLS, CONTAINERS)
    assert found is not None
    assert (found.tool, found.metric) == (tool, metric)
    assert found.missing == ""


def test_ninety_phrasings_and_more() -> None:
    assert len(ASKED) >= 90


@pytest.mark.parametrize("text", ["", "hello", "what is the meaning of life", "42", "ls -la"])
def test_what_is_no_question_of_ours_is_not_answered(text: str) -> None:
    assert understand(text, TOOLS, CONTAINERS) is None


def test_a_container_is_named_by_its_name_alone() -> None:
    """One that is called like an everyday word ("node") is not meant by every question about nodes."""
    found = understand("does memory-cache leak?", TOOLS, CONTAINERS)
    assert found is not None
    assert found.arguments == {"container": "memory-cache", "study": "trend", "metric": "memory"}
    full = understand("is the node full", TOOLS, CONTAINERS)
    assert full is not None
    assert "container" not in full.arguments


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("what happened at 14:05?", {"at": "14:05", "minutes": 15}),
        ("who used the most cpu in the last 2 hours", {"by": "cpu", "from": "-120m"}),
        ("top memory of the past hour", {"by": "memory", "from": "-60m"}),
        ("who uses the most cpu over the last 2h", {"by": "cpu", "from": "-120m"}),
        ("who used the most cpu in the past two hours", {"by": "cpu", "from": "-120m"}),
        ("who uses most memory over 90min", {"by": "memory", "from": "-90m"}),
        ("top cpu of the last half an hour", {"by": "cpu", "from": "-30m"}),
        ("top cpu for 1.5 hours", {"by": "cpu", "from": "-90m"}),
        ("top memory of the last week", {"by": "memory", "from": "-10080m"}),
        ("top memory since three days", {"by": "memory", "from": "-4320m"}),
        ("top cpu over an hour ago", {"by": "cpu", "from": "-60m"}),
        (
            "does redis leak since 9:30",
            {"container": "redis", "study": "trend", "metric": "memory", "from": "9:30"},
        ),
        ("compare redis before and after 14:05", {"container": "redis", "b_from": "14:05"}),
        ("what happened 20 minutes ago", {"at": "-20m", "minutes": 15}),
        ("what happened half an hour ago", {"at": "-30m", "minutes": 15}),
        ("what happened 2h ago", {"at": "-120m", "minutes": 15}),
        ("what happened two hours ago", {"at": "-120m", "minutes": 15}),
        ("what happened in the last 2 hours", {"at": "-60m", "minutes": 60}),
        ("is anything wrong since 14:05", {"at": "14:05", "minutes": 15}),
        ("any problems in the past day?", {"at": "-720m", "minutes": 720}),
        ("what went wrong at 2 pm", {"at": "14:00", "minutes": 15}),
        ("what broke yesterday at 14:05", {"at": "yesterday 14:05", "minutes": 15}),
        ("what died last night", {"at": "02:00", "minutes": 300}),
        ("who used the most memory today", {"by": "memory", "from": "00:00"}),
        ("who used the CPU between 14:00 and 14:10", {"by": "cpu", "from": "14:00", "to": "14:10"}),
        ("what happened from 9:30 to 10:01", {"at": "09:45", "minutes": 16}),
        ("what happened between 23:50 and 0:10", {"at": "00:00", "minutes": 10}),
    ],
)
def test_times_in_a_question_are_kept(text: str, given: dict[str, object]) -> None:
    found = understand(text, TOOLS, CONTAINERS)
    assert found is not None
    assert found.arguments == given


def test_a_tool_that_is_not_there_is_named_and_replaced_by_the_nearest() -> None:
    there = [one for one in TOOLS if one not in ("scan", "rightsize", "summarize_node", "what_is_wrong")]
    for text, missing, instead in (
        ("anything leaking?", "scan", "top_containers"),
        ("who is over-provisioned", "rightsize", "top_containers"),
        ("is the node full", "summarize_node", "list_nodes"),
        ("what is wrong", "what_is_wrong", "explain_incident"),
    ):
        found = understand(text, there, CONTAINERS)
        assert found is not None
        assert (found.missing, found.tool) == (missing, instead)


def test_every_tool_is_reached_by_a_question() -> None:
    """A tool that no words lead to is not there for whoever asks in words."""
    reached = {understood.tool for text, _, _ in ASKED if (understood := understand(text, TOOLS, CONTAINERS))}
    assert reached == set(ALL_TOOLS) - {"find_metrics"}
    assert set(TOOLS) == set(ALL_TOOLS)


def test_every_row_is_a_call_that_is_accepted() -> None:
    for row in QUESTIONS:
        calls = [(row.tool, row.arguments), *(one for one in (row.named, row.without) if one)]
        for tool, arguments in calls:
            given = {**arguments, **({"container": "x"} if (tool, arguments) == row.named else {})}
            check_arguments(tool, ALL_TOOLS[tool].arguments, given)
            for name in ("by", "metric"):
                assert arguments.get(name, "cpu") in PLAIN


@pytest.mark.parametrize(
    ("question", "container", "mistyped"),
    [
        ("does the catlog leak?", "catalog", "catlog"),
        ("how is chekout-api doing", "checkout-api", "chekout-api"),
        ("why was memroy-cache slow?", "memory-cache", "memroy-cache"),
        ("does catalog leak, or the chekout-api?", "catalog", ""),
        # Other words, and names too short to tell a slip from another word.
        ("who uses the most memory?", "", ""),
        ("how is redi doing?", "", ""),
        ("is the node full?", "", ""),
        ("does the frontend leak?", "", ""),
    ],
)
def test_a_name_that_is_nearly_one_is_taken_and_said(question: str, container: str, mistyped: str) -> None:
    found = understand(question, TOOLS, CONTAINERS)
    assert found is not None
    assert (found.arguments.get("container", ""), found.mistyped) == (container, mistyped)


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("what happened on demo-7 at 14:00?", "demo-7"),
        ("how is demo-9?", "demo-9"),
        ("is node worker-aa full?", "worker-aa"),
        ("what happened on demo-2 at 14:00?", ""),
        ("does web-1 on demo-2 leak?", ""),
        ("what happened at 14:05?", ""),
        ("who uses the most on this node?", ""),
        ("is demos slow?", ""),
    ],
)
def test_a_node_that_is_not_there_is_found_in_a_question(question: str, unknown: str) -> None:
    """An answer about the others would be taken for one about it."""
    assert find_unknown_node(question, ("demo-1", "demo-2", "worker-a"), ("web-1",)) == unknown
