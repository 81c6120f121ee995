"""Confidence in an annotation by its age: a stale one means neither idle nor busy."""

# The agent writes at least every 60 s, and a busy API server may take a while.
FRESH_SECONDS = 90.0
# By then a five-minute window has no part in common with the annotated one.
STALE_SECONDS = 300.0
# Clocks of machines in one cluster differ by less than this, or something is wrong.
AHEAD_SECONDS = 60.0


def judge_age(age_seconds: float) -> tuple[float, str]:
    """
    Confidence from 1 to 0, and the reason where it is less than 1.

    forall a <= b, both not ahead: judge_age(a)[0] >= judge_age(b)[0]
    """
    if age_seconds < -AHEAD_SECONDS:
        return 0.0, f"annotation from {-age_seconds:.0f} s ahead of our clock: not believed"
    if age_seconds <= FRESH_SECONDS:
        return 1.0, ""
    if age_seconds >= STALE_SECONDS:
        return 0.0, f"annotation stale: written {age_seconds:.0f} s ago, believed up to {STALE_SECONDS:.0f} s"
    left = (STALE_SECONDS - age_seconds) / (STALE_SECONDS - FRESH_SECONDS)
    return left, f"annotation ageing: written {age_seconds:.0f} s ago"
