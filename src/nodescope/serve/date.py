"""How far a server's clock is ahead of ours, by the Date of its answer."""

from email.utils import parsedate_to_datetime


def measure_ahead(date: str | None, begun_ns: int, ended_ns: int) -> float | None:
    """The server's clock less ours; 0 where Date may be any moment of the request, None where it has none."""
    if date is None:
        return None
    try:
        told = parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None
    begun, ended = begun_ns / 1e9, ended_ns / 1e9
    # Date is in whole seconds: told to told + 1.
    return told - ended if told > ended else min(0.0, told + 1 - begun)
