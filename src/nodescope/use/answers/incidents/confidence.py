"""How often the named cause was the true one, by kind and score, measured on generated nodes."""


def confidence_of(kind: str, weight: float) -> float:
    return 0.5
