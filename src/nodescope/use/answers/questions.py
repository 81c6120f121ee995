"""
Questions in plain words: a table from what people ask to the tool and the metric that answer it.

No model is asked. Words are led to ideas (IDEAS: "hog" and "noisy" are both
about neighbours), and the first row of QUESTIONS whose ideas all occur is the
answer. Rows go from the particular to the general, so their order matters.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

# By idea: the words that stand for it, as they are or at their beginning (a word with * at its end).
IDEAS = {
    "leak": "leak* creep* bleed* memleak*",
    "grow": "grow* rise* rising rose climb* increas* upward* creep* swell* balloon*",
    "shrink": "fall* shrink* decreas* declin*",
    "memory": "memory mem ram heap rss footprint gib mib gigabyte* swap",
    "cpu": "cpu* processor* core cores compute millicore* cycles load",
    "disk": "disk* io iops storage volume* ssd nvme write writes writing written reads filesystem*",
    "read": "read reads reading",
    "network": "network* talk* chatty traffic bandwidth net packet* ingress egress download* upload* receiv* transmit* outbound inbound",
    "send": "send* sent transmit* upload* egress outgoing outbound push*",
    "power": "power watt* energy",
    "gpu": "gpu* cuda accelerator* vram graphics",
    "throttle": "throttl* quota capped cfs squeezed",
    "size": "rightsiz* size* sizing oversiz* undersiz* overprovision* underprovision* provision* overallocat* request* recommend*",
    "right": "right",
    "limits": "limit limits",
    "adjust": "should suggest* propos* set give lower* rais* bigger smaller low high sensible reasonable tune adjust* need*",
    "need": "need* give allot* assign*",
    "scarce": "bottleneck*",
    "move": "move moved reschedul* rebalanc* relocat* unbalanced",
    "waste": "wast* idle idling unused underus* underutili* unneeded lazy zombie* save saving* reclaim* free money",
    "neighbour": "neighbo* nois* hog* steal* stole* bully bullies bullied greedy starv* contention interfer* disturb*",
    "slow": "slow* latency sluggish lag* unresponsive stall* degrad* delay* hang* hung stutter* p95 p99",
    "spike": "spik* burst* peak* surge* jitter*",
    "repeat": "repeat* period* cycl* recur* cron* rhythm* regular* pattern* every hourly oscillat* fluctuat* sawtooth* seasonal*",
    "evict": "evict* preempt*",
    "oom": "oom* outofmemory",
    "kill": "kill* die died dies dying dead terminat* disappear* vanish* gone",
    "fail": "fail* error* exited exits exit",
    "restart": "restart* crash* crashloop* flap* reboot* bounc*",
    "change": "chang* differ* happen* occur* incident* outage* broke break* event* deviat*",
    "wrong": "wrong broken problem* trouble* issue issues unhealthy sick ill alert* alarm* warning* paged pager finding* watcher attention worr* concern* fix*",
    "bad": "bad badly worse worst serious* sever* critical urgent* danger* fire burning",
    "compare": "compar* versus vs against yesterday earlier previous* before",
    "deploy": "deploy* release* rollout* rolled version upgrade* image canary regress*",
    "node": "node* host* machine* server* box* cluster*",
    "full": "full fill* capacity room headroom exhaust* saturat* overload* overcommit* crowded left space enough fit fits",
    "health": "health* doing status overview fine ok okay well alright summary summari* state",
    "pressure": "pressure psi wait* contended queue*",
    "unusual": "unusual* anomal* strange* weird* odd* abnormal* outlier* suspicious* unexpected*",
    "together": "together correlat* relat* tandem sync* alongside",
    "cause": "cause* caus* blame culprit reason why responsible fault guilty behind made",
    "most": "who whose top most biggest heaviest highest largest hungriest busiest busy greatest rank* consum* use* using eat* burn* hot* hog*",
    "least": "least lowest smallest quietest fewest",
    "recorded": "gap gaps missing incomplete unrecorded recorded recording",
    "threads": "thread* pids process*",
    "metric": "metric* measure* collected series",
    "forecast": "will soon until run* reach* hit forecast predict* when",
    "future": "will soon until predict* forecast*",
    "clock": "clock* skew* ntp",
    "list": "list show all there running runs exist* many count",
    "container": "container* pod* workload* service* job* app apps application*",
}
MEASURED = r"(cpu|memory|mem|ram|disk|io|network|gpu)\b"
WELL = "ok|okay|fine|good|well|alright|all right|healthy|green|in order|normal"
# Phrases that are one word to the table.
PHRASES = {
    # A moment or a span, and no comparison, unless something is said to be "more than yesterday".
    r"yesterday( at)?(?= \d)": "",
    r"(?<!than )(?<!with )(?<!as )(?<!to )(?<!from )(?<!and )(?<!since )(?<!vs )(?<!versus )(?<!against )yesterday": "",
    r"(up[\s-]and[\s-]down|back[\s-]and[\s-]forth|come(s)? and go(es)?|again and again)": "oscillat",
    r"right[\s-]*siz": "rightsiz",
    r"over[\s-]*(provision|allocat|siz)": r"over\1",
    r"under[\s-]*(provision|siz|us|utili)": r"under\1",
    r"run(s|ning)?[\s-]out": "full",
    r"out[\s-]of[\s-]memory": "outofmemory",
    r"crash[\s-]*loop": "crashloop",
    r"work(ing)?[\s-]set": "memory",
    r"page[\s-]cache": "memory",
    r"i/o": "io",
    r"too (big|large|small|generous|tight)": "size",
    r"(doing|do|does) nothing": "idle",
    r"go(ing|es)? up\b": "grow",
    r"what'?s new": "change",
    # A figure of a metric, and neither slowness nor something that comes again.
    rf"\b(p\d\d|percentile|peak|max|maximum|highest) (?=(of )?(the )?{MEASURED})": "most ",
    r"\b(agent|nodescope|collector) (was |is |been )?(down|away|off|dead|running|up)\b": "gap",
    r"moves? with": "together",
    r"(cpu|memory|ram) (limit|request)s? (fit|right)": "rightsiz",
    r"how much (of )?(my |the |our )?(money|cost)": "waste",
    r"too much (room|headroom|slack|reserve)": "waste",
    r"what limits (?!would|should|are|is|do|does|fit|suit|to\b)|(limited|bound) by|(cpu|memory|disk|io)[\s-]bound": "bottleneck ",
    r"(what|who|which \w+)('s| is| are)? (runs?|running)( (on|in|at) (this|that|the|my|our|a) (node|host|machine|server|box))?\b": "container",
    r"(which|what) (node|host|machine|server)s (do (i|we) have|are there|is there)": "list node",
    r"scal(e|ed|ing) (down|back)": "rightsiz",
    r"held back": "throttl",
    r"(going|about) to( be)?\b": "soon",
    r"how long (until|till|before)": "until",
    r"(do|does|doing) (almost |next to |hardly )(nothing|anything)": "idle",
    # What is over, and is looked for around its time.
    r"(go|goes|going|gone|went|been) wrong": "happen",
    r"(caus\w*|trigger\w*|start\w*) (of )?(the|this|that|my|our|an|a) (problem|trouble|issue|alert|alarm)s?": "cause",
    # Whether all is well is asked by whoever fears that it is not.
    rf"\b(everything|everybody|all|we|things)( the| my| our)?( \w+)? ({WELL})\b": "wrong",
    rf"\b(not|n't|nothing|anything|something) ({WELL}|right|work(s|ing)?)\b": "wrong",
    r"\b(look|start|begin|do|check|fix|see)( at| with| into)? (first|next)\b": "wrong",
    r"\b(anything|something|what) (i|we|one) (should|must|need to|ought to) (know|see|do|hear)\b": "wrong",
}
EXPLAIN, COMPARE, WRONG = "explain_incident", "compare_windows", "what_is_wrong"
MINUTES = {"min": 1, "minute": 1, "m": 1, "hour": 60, "hr": 60, "h": 60, "day": 1440, "d": 1440}
MINUTES |= {"week": 10_080, "w": 10_080}
NUMBERS = {
    "a": 1,
    "an": 1,
    "half a": 0.5,
    "half an": 0.5,
    "couple of": 2,
    "few": 3,
    "twelve": 12,
    "fifteen": 15,
}
NUMBERS |= {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
NUMBERS |= {"ten": 10, "twenty": 20, "thirty": 30, "forty": 40, "sixty": 60, "ninety": 90}
# "2 hours", "2h", "two hours", "1.5 h", "half an hour".
COUNT = rf"(\d+(?:\.\d+)?|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
UNIT = r"(min(?:ute)?|hour|hr|day|week|h|d|m|w)s?\b"
AGO = re.compile(rf"\b{COUNT}\s*{UNIT}\s+ago\b")
HALF_DAY = re.compile(r"\b(\d{1,2})(?::(\d{2}))?\s*(am|pm)\b")
# Parts of a day as people say them: the middle of it, and from when on.
PARTS_OF_DAY = {
    "last night": ("02:00", "-12h"),
    "tonight": ("02:00", "-12h"),
    "overnight": ("02:00", "-12h"),
    "this morning": ("09:00", "06:00"),
    "at noon": ("12:00", "12:00"),
    "since yesterday": ("-12h", "-24h"),
    "yesterday": ("-24h", "-24h"),
    "today": ("-3h", "00:00"),
}
# On both sides of the middle of a part of the day: a night is from 21:00 to 07:00.
WIDEST_MINUTES = 300
# What explain_incident accepts on both sides of a moment.
MOST_MINUTES = 720
# "the last hour", "the past two hours", "over 2h"; not "over an hour ago", which is a moment.
LAST = re.compile(
    rf"\b(?:(?:last|past|previous)\s+(?:{COUNT}\s*)?|(?:over|during|within|for|since)\s+(?:the\s+)?{COUNT}\s*){UNIT}(?!\s+ago)"
)
CLOCK = re.compile(r"\b(\d{1,2}:\d{2})\b")
BETWEEN = re.compile(r"\b(?:between|from)\s+(\d{1,2}:\d{2})\s+(?:and|to|until|till)\s+(\d{1,2}:\d{2})\b")

# A name that is put wrongly differs by about a letter; of shorter ones, other words do, too.
LEAST_MISTYPED, NEARLY = 5, 0.88
# Nodes are numbered: one that is not there resembles those that are.
RESEMBLES = 0.75
AFTER_NODE = re.compile(r"\b(?:on|node|host|machine|server)\s+([a-z0-9][a-z0-9._-]*[a-z0-9])")

Arguments = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Question:
    """A row: whoever asks about all these ideas is answered by this tool."""

    ideas: str
    tool: str
    arguments: Arguments
    why: str
    named: tuple[str, Arguments] | None = None
    """The tool and its arguments where the question names a container."""
    without: tuple[str, Arguments] | None = None
    """What comes nearest where the tool is not there."""


DAY_BEFORE = {"a_from": "-25h", "a_to": "-24h", "b_from": "-1h", "b_to": "now"}
SUMMARY: tuple[str, Arguments] = ("summarize_container", {})
LEAKS: Arguments = {"study": "trend", "metric": "memory"}
TOGETHER: Arguments = {"study": "correlation", "metric": "cpu"}
AROUND_NOW: Arguments = {"at": "now", "minutes": 60}
LONG_AGO: Arguments = {"at": "now", "minutes": WIDEST_MINUTES}


def top(ideas: str, by: str, why: str) -> Question:
    return Question(
        ideas,
        "top_containers",
        {"by": by},
        why,
        ("analyze_container", {"study": "summary", "metric": by}),
    )


def scan(ideas: str, study: str, metric: str, why: str) -> Question:
    """One study over all workloads; of a container that is named, the study of it."""
    chosen: Arguments = {"study": study, "metric": metric}
    return Question(
        ideas, "scan", chosen, why, ("analyze_container", chosen), ("top_containers", {"by": metric})
    )


def size(ideas: str, why: str) -> Question:
    return Question(
        ideas, "rightsize", {}, why, ("rightsize", {}), ("top_containers", {"by": "memory_limit_share"})
    )


def around(ideas: str, why: str, when: Arguments = AROUND_NOW) -> Question:
    return Question(ideas, "explain_incident", when, why, ("explain_incident", when))


def wrong(ideas: str, why: str) -> Question:
    """What is wrong now; of a container that is named, who did that to it."""
    return Question(ideas, WRONG, {}, why, (EXPLAIN, AROUND_NOW), (EXPLAIN, AROUND_NOW))


def ahead(ideas: str) -> Question:
    """What has not happened yet: the time that is left is part of what is wrong."""
    why = "what is wrong now, and how long until a limit is reached"
    return Question(ideas, WRONG, {}, why, SUMMARY, ("scan", LEAKS))


def hogs(what: str, by: str) -> Question:
    """Who is the largest; of a container that is named, who took what it lacked."""
    return Question(
        f"most neighbour {what}",
        "top_containers",
        {"by": by},
        f"who uses the most {what}",
        (EXPLAIN, AROUND_NOW),
    )


def whole_node(ideas: str, why: str) -> Question:
    return Question(ideas, "summarize_node", {}, why, SUMMARY, ("list_nodes", {}))


def windows(ideas: str, spans: Arguments, why: str) -> Question:
    return Question(ideas, "compare_windows", spans, why, ("compare_windows", spans))


MOST_OF = (("memory", "memory"), ("cpu", "cpu"), ("disk", "disk_write"), ("network", "network_receive"))
QUESTIONS = (
    # What was measured, and who there is.
    Question("metric list", "list_metrics", {}, "which metrics there are"),
    Question("metric", "list_metrics", {}, "which metrics there are"),
    Question("clock", "list_nodes", {}, "whose clock is off, and how new the data is"),
    Question("move", "rightsize", {"what": "moves"}, "which pods should run on another node"),
    # Requests and limits that do not fit.
    size("size", "requests and limits that fit what is used"),
    size("right limits", "requests and limits that fit what is used"),
    size("adjust limits", "requests and limits that fit what is used"),
    *(top(f"most need {what}", what, f"who uses the most {what}") for what in ("cpu", "memory")),
    *(size(f"need {what}", "requests and limits that fit what is used") for what in ("cpu", "memory")),
    top("waste gpu", "gpu_utilization", "which GPUs are used, and which are not"),
    size("waste", "what is reserved and not used"),
    # Ends that nobody wanted.
    top("evict", "memory_working_set", "what kubelet evicts by: the working set of each container"),
    Question("future oom", "scan", LEAKS, "whose memory will reach its limit", SUMMARY),
    ahead("future kill"),
    ahead("future fail"),
    ahead("future restart"),
    ahead("future change"),
    around("oom cause", "what was killed for memory, and what filled it", LONG_AGO),
    top("oom", "oom_kills", "who was killed for memory"),
    top("kill memory", "oom_kills", "who was killed for memory"),
    scan("restart change", "changepoint", "cpu", "what was different after it"),
    around("restart cause", "what restarted, and what came before it", LONG_AGO),
    Question("restart", "list_containers", {"sort": "restarts"}, "who restarts most often", SUMMARY),
    around("fail", "who was killed or restarted; exit codes are not collected", LONG_AGO),
    around("kill", "what ended, and what came before it", LONG_AGO),
    # One at the cost of others; who asks for a ranking gets one.
    *(hogs(what, by) for what, by in MOST_OF),
    around("neighbour", "what one container took, and who then waited"),
    around("slow cause", "what changed when it became slow"),
    top("throttle", "cpu_throttled", "who is held back by a CPU quota"),
    # Over time.
    scan("leak", "trend", "memory", "whose memory rises steadily"),
    scan("grow disk", "trend", "disk_write", "whose writing rises"),
    scan("grow cpu", "trend", "cpu", "whose CPU use rises"),
    scan("grow send", "trend", "network_transmit", "who sends more and more"),
    scan("grow network", "trend", "network_receive", "whose traffic rises"),
    scan("grow", "trend", "memory", "whose memory rises steadily"),
    scan("forecast full memory", "trend", "memory", "when memory reaches its limit"),
    scan("forecast limits", "trend", "memory", "when memory reaches its limit"),
    scan("spike memory", "periodicity", "memory", "whose memory peaks again and again"),
    scan("spike", "periodicity", "cpu", "whose CPU peaks again and again"),
    scan("repeat memory", "periodicity", "memory", "whose memory repeats itself"),
    scan("repeat", "periodicity", "cpu", "whose CPU repeats itself"),
    scan("unusual memory", "anomaly", "memory", "whose memory is unusual now"),
    scan("unusual", "anomaly", "cpu", "what is unusual now"),
    Question(
        "together", "explain_incident", AROUND_NOW, "who moved with whom", ("analyze_container", TOGETHER)
    ),
    windows("deploy", {}, "what is different since the last deploy"),
    windows("compare", DAY_BEFORE, "what is different from a day before"),
    wrong("wrong", "what is wrong now, the worst first"),
    scan("change memory", "changepoint", "memory", "when whose memory changed"),
    scan("change cpu", "changepoint", "cpu", "when whose CPU use changed"),
    around("change", "what changed, in order of time"),
    around("cause", "what changed, in order of time"),
    # The node as a whole.
    whole_node("scarce", "what is short, and who uses it"),
    wrong("node bad", "what is wrong now, the worst first"),
    whole_node("node full", "how full the node is, and who fills it"),
    whole_node("node health", "how the node is doing"),
    whole_node("node pressure", "how full the node is, and who fills it"),
    Question("node list", "list_nodes", {}, "which nodes there are, and how new their data is"),
    whole_node("cpu full", "how full the node is, and who fills it"),
    Question("recorded", "list_nodes", {}, "what was recorded, and what could not be read"),
    # Who has the least, and who the most, of something.
    *(
        Question(f"least {what}".strip(), "top_containers", {"by": by, "order": "ascending"}, why, SUMMARY)
        for what, by, why in (
            ("memory", "memory", "who uses the least memory"),
            ("", "cpu", "who uses the least CPU"),
        )
    ),
    top("slow disk", "pressure_io", "who waits for the disk"),
    top("pressure disk", "pressure_io", "who waits for the disk"),
    top("pressure memory", "pressure_memory", "who waits for memory"),
    top("pressure", "pressure_cpu", "who waits for CPU"),
    top("slow", "pressure_cpu", "who waits for CPU"),
    top("limits memory", "memory_limit_share", "who is near its memory limit"),
    top("limits cpu", "cpu_limit_share", "who is near its CPU limit"),
    top("limits", "memory_limit_share", "who is near its memory limit"),
    top("full disk most", "disk_write", "who writes the most"),
    top("full disk container", "disk_write", "who writes the most"),
    whole_node("full disk", "how full the disks are"),
    top("full memory", "memory_limit_share", "who is near its memory limit"),
    top("gpu memory", "gpu_memory", "which GPUs' memory is used most"),
    top("gpu power", "gpu_power", "which GPUs draw the most power"),
    top("gpu", "gpu_utilization", "which GPUs are used most"),
    top("disk read", "disk_read", "who reads the most"),
    top("disk", "disk_write", "who writes the most"),
    top("send", "network_transmit", "who sends the most"),
    top("network", "network_receive", "who receives the most"),
    top("threads memory", "memory", "who uses the most memory; processes are on the page and in /metrics"),
    top("threads cpu", "cpu", "who uses the most CPU; processes are on the page and in /metrics"),
    top("threads", "threads", "who has the most threads"),
    top("memory", "memory", "who uses the most memory"),
    top("cpu", "cpu", "who uses the most CPU"),
    whole_node("node", "how the node is doing"),
    whole_node("full", "how full the node is, and who fills it"),
    top("most", "cpu", "who uses the most CPU"),
    wrong("bad", "what is wrong now, the worst first"),
    Question("health", "summarize_node", {}, "how the node is doing", SUMMARY, ("list_nodes", {})),
    Question("container list", "list_containers", {}, "which containers there are", SUMMARY),
    Question("container", "list_containers", {}, "which containers there are", SUMMARY),
    Question("list", "list_containers", {}, "which containers there are", SUMMARY),
)


@dataclass(frozen=True, slots=True)
class Understood:
    """A call that answers a question."""

    tool: str
    arguments: dict[str, str | int]
    why: str
    metric: str = ""
    missing: str = ""
    """The tool that would answer better and is not there; empty where it is."""
    mistyped: str = ""
    """The word that was taken for the name of the container; empty where that stands there itself."""
    ideas: frozenset[str] = field(default_factory=frozenset)


def understand(text: str, tools: Iterable[str], containers: Iterable[str] = ()) -> Understood | None:
    """The call that answers the question, with these tools and about one of these containers; None if no row fits."""
    names = [*containers]
    mistyped, container = "", find_name(text, names)
    if not container:
        mistyped, container = find_mistyped(text, names)
    ideas = find_ideas(text)
    row = next((one for one in QUESTIONS if ideas >= set(one.ideas.split())), None)
    if row is None:
        if not container:
            return None
        row = Question("", *SUMMARY, "how it is doing", SUMMARY)
    tool, arguments = row.named if container and row.named else (row.tool, row.arguments)
    if tool == WRONG and find_times(text, EXPLAIN):
        # What was wrong then is no matter of now.
        tool, arguments = EXPLAIN, AROUND_NOW
    missing = "" if tool in set(tools) else tool
    if missing and row.without:
        tool, arguments = SUMMARY if container else row.without
    times = find_times(text, tool)
    chosen = {
        **({"container": container} if container and row.named else {}),
        # A moment to compare at goes before the windows that are usual.
        **({} if tool == COMPARE and times else arguments),
        **times,
    }
    metric = str(arguments.get("metric") or arguments.get("by") or "")
    why = "what is different since then" if tool == COMPARE and times else row.why
    return Understood(tool, chosen, why, metric, missing, mistyped if "container" in chosen else "", ideas)


def find_ideas(text: str) -> frozenset[str]:
    lowered = text.lower().replace("\u2019", "'")
    for pattern, word in PHRASES.items():
        lowered = re.sub(pattern, word, lowered)
    words = re.findall(r"[a-z0-9']+", LAST.sub(" ", lowered))
    return frozenset(idea for word in words for idea in ideas_of(word))


def ideas_of(word: str) -> Iterable[str]:
    for idea, known in IDEAS.items():
        if any(word == one or (one.endswith("*") and word.startswith(one[:-1])) for one in known.split()):
            yield idea


def find_name(text: str, containers: Iterable[str]) -> str:
    """The longest of these names that stands in the question as a word; empty where none does."""
    words = list_words(text)
    found = [name for name in containers if name.lower() in words and not is_everyday(name)]
    return max(found, key=lambda name: (len(name), name), default="")


def list_words(text: str) -> list[str]:
    """As they stand, and without what ends a sentence; in their order, each once."""
    words = re.findall(r"[a-z0-9./_-]+", text.lower())
    return list(dict.fromkeys([*words, *(word.strip("./_-") for word in words)]))


def find_mistyped(text: str, containers: Iterable[str]) -> tuple[str, str]:
    """A word of no other meaning that is nearly one of these names, and that name; both empty where there is none."""
    names = {
        name.lower(): name for name in containers if len(name) >= LEAST_MISTYPED and not is_everyday(name)
    }
    for word in list_words(text):
        if len(word) < LEAST_MISTYPED or is_everyday(word):
            continue
        for near in get_close_matches(word, names, n=1, cutoff=NEARLY):
            if near[0] == word[0]:
                return word, names[near]
    return "", ""


def find_unknown_node(text: str, nodes: Collection[str], containers: Collection[str]) -> str:
    """A word that is put as a node's name, resembles one, and is none; empty where there is none."""
    words = list_words(text)
    asked = [word for word in words if any(letter.isdigit() for letter in word)]
    asked += [word for word in AFTER_NODE.findall(text.lower()) if not is_everyday(word)]
    known = {name.lower() for name in (*nodes, *containers)}
    lowered = [name.lower() for name in nodes]
    return next(
        (one for one in asked if one not in known and get_close_matches(one, lowered, 1, RESEMBLES)), ""
    )


def is_everyday(name: str) -> bool:
    """A container that is called like what people ask about is not meant."""
    return bool(set(ideas_of(name.lower())) - {"container"}) and "-" not in name


def find_times(text: str, tool: str) -> dict[str, str | int]:
    """A time of day, or how far back, in the words of the tool that is asked."""
    if tool not in (EXPLAIN, COMPARE, *SPANNED):
        return {}
    if (between := BETWEEN.search(text.lower())) and tool != COMPARE:
        return find_span(between[1], between[2], tool)
    moment, part = find_moment(text.lower()), find_part(text.lower())
    if tool == COMPARE:
        since = moment or find_back(text.lower())
        return {"b_from": since} if since else {}
    if tool == EXPLAIN:
        if moment:
            return {"at": moment, "minutes": 15}
        if half := count_back(text.lower()) // 2:
            return {"at": f"-{half}m", "minutes": min(half, MOST_MINUTES)}
        return {"at": part[0], "minutes": WIDEST_MINUTES} if part else {}
    back = find_back(text.lower()) or moment or (part[1] if part else "")
    return {"from": back} if back else {}


def find_span(start: str, end: str, tool: str) -> dict[str, str | int]:
    """Between two times of a day; the second is of the next day where it is the earlier one."""
    if tool != EXPLAIN:
        return {"from": start, "to": end}
    first, minutes = minute_of_day(start), (minute_of_day(end) - minute_of_day(start)) % (24 * 60)
    middle = (first + minutes // 2) % (24 * 60)
    return {"at": f"{middle // 60:02d}:{middle % 60:02d}", "minutes": max(1, -(-minutes // 2))}


def minute_of_day(clock: str) -> int:
    hour, minute = clock.split(":")
    return 60 * int(hour) + int(minute)


def find_moment(lowered: str) -> str:
    """14:05, yesterday 14:05, 2 pm, 20 minutes ago; empty where the question has none."""
    clock, half, ago = CLOCK.search(lowered), HALF_DAY.search(lowered), AGO.search(lowered)
    day = "yesterday " if "yesterday" in lowered else ""
    if half and 1 <= int(half[1]) <= 12:
        return f"{day}{int(half[1]) % 12 + 12 * (half[3] == 'pm'):02d}:{half[2] or '00'}"
    if clock:
        return f"{day}{clock[1]}"
    return f"-{count_minutes(ago[1], ago[2])}m" if ago else ""


def find_back(lowered: str) -> str:
    back = count_back(lowered)
    return f"-{back}m" if back else ""


def count_back(lowered: str) -> int:
    """The minutes of "the last two hours"; 0 where the question has no such words."""
    last = LAST.search(lowered)
    return count_minutes(last[1] or last[2] or "one", last[3]) if last else 0


def find_part(lowered: str) -> tuple[str, str] | None:
    return next((part for words, part in PARTS_OF_DAY.items() if words in lowered), None)


def count_minutes(number: str, unit: str) -> int:
    return max(1, round((NUMBERS[number] if number in NUMBERS else float(number)) * MINUTES[unit]))


SPANNED = frozenset({"top_containers", "analyze_container", "summarize_container", "scan", "summarize_node"})
