"""
Quantities as Kubernetes writes them, in cores and bytes: 250m, 1.5, 128Mi, 1e9.

Docs  https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import math
import re

_QUANTITY = re.compile(r"([+-]?[0-9]{0,30}\.?[0-9]{0,30})(?:[eE]([+-]?[0-9]{1,3})|([munkKMGTPE]?i?))")
_DECIMAL = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
}
_BINARY = {f"{letter}i": 1024.0 ** (place + 1) for place, letter in enumerate("KMGTPE")}
FACTORS = {**_DECIMAL, **_BINARY}


def parse_resource(text: object) -> float | None:
    """In the resource's own unit; None where it is no quantity."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or match[3] not in (None, *FACTORS):
        return None
    try:
        value = float(match[1]) * (10.0 ** int(match[2]) if match[2] else FACTORS[match[3] or ""])
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and value >= 0 else None
