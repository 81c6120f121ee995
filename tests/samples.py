"""Sample data of other people's hardware: found through NODESCOPE_SAMPLES, copied nowhere."""

import os
from pathlib import Path

import pytest


def find_samples(*parts: str) -> Path:
    """A folder or file of the samples; skips when there are none, fails when they should be there."""
    told = os.environ.get("NODESCOPE_SAMPLES")
    if not told:
        pytest.skip("no sample data: set NODESCOPE_SAMPLES to its folder")
    path = Path(told).joinpath(*parts)
    assert path.exists(), f"NODESCOPE_SAMPLES has no {path}"
    return path


def list_samples(pattern: str) -> list[Path]:
    """Files that match, at collection time; empty when there are no samples."""
    told = os.environ.get("NODESCOPE_SAMPLES")
    return sorted(Path(told).glob(pattern)) if told else []
