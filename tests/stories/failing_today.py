"""
Stories and rules that the product does not hold yet, in the short form that the fast tests run.

The one list: a name here is expected to fail, and the test fails when it
passes. Take it out then.
"""

STORIES: frozenset[str] = frozenset(
    {
        "most-cpu-among-jobs",
        "most-cpu-are-jobs",
        "most-cpu-has-ended",
        "most-memory",
        "idle-waste",
        "deploy-doubles-cpu",
        "scaled-out",
        "by-deployment",
        "one-of-a-statefulset",
        "by-cron-job",
        "restart-doubles-cpu",
        "what-crash-loops",
        "period-7-minutes",
        "cache-is-not-critical",
        "node-full",
        "rightsize-not-yet",
        "clock-is-ahead",
        "no-impossible-figures",
        "times-as-written",
        "words-lead-to-tools",
        "what-spikes",
        "who-leaks",
    }
)
RULES: frozenset[str] = frozenset({"small", "possible", "going on"})
