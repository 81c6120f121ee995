"""Rows of data that people labelled: TCPD and NAB folders, where they are given."""

import importlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.judge.make.case import START_AT, Case
from bench.judge.table import Row
from bench.studies_scores import Labelled, covering, f1, read_labelled
from nodescope.use.studies import Series, run_study

TCPD = "Change points of labelled series (TCPD), F1 with margin 5 and covering"
NAB = "NAB's standard score by NAB's own scorer"
WANTED_NAB = 70.0
# Commit 1399125 on the fourteen series handed over: no later figure may be lower.
BEFORE = {14: (0.822, 0.808)}
SURE = 0.5
# Samples between two questions about a labelled series: an hour of its five minutes.
ASKED_EVERY = 12


def sample_folders(given: Iterable[Path]) -> list[Path]:
    """The folders given, else those below NODESCOPE_SAMPLES; each as it is or one level down."""
    samples = os.environ.get("NODESCOPE_SAMPLES")
    roots = list(given) or ([Path(samples)] if samples else [])
    return [place for root in roots for place in (root, *sorted(root.glob("*"))) if is_labelled(place)]


def is_labelled(folder: Path) -> bool:
    return (folder / "annotations.json").exists() or (folder / "windows.json").exists()


def rows(given: Iterable[Path]) -> list[Row]:
    folders = sample_folders(given)
    tcpd = [folder for folder in folders if (folder / "annotations.json").exists()]
    nab = [folder for folder in folders if (folder / "windows.json").exists()]
    result = [row for folder in tcpd for row in tcpd_rows(folder)] or [not_measured(TCPD, "no folder given")]
    return result + ([nab_row(folder) for folder in nab] or [not_measured(NAB, "no folder given")])


def not_measured(part: str, why: str) -> Row:
    return Row(part, why, "not measured")


def tcpd_rows(folder: Path) -> list[Row]:
    labelled = read_labelled(folder)
    every, sure = (np.array([scores(one, least) for one in labelled]).mean(axis=0) for least in (0.0, SURE))
    before = BEFORE.get(len(labelled))
    result = []
    for place, name in enumerate(("F1", "covering")):
        wanted = f">= {before[place]:.3f}" if before else ""
        is_met = bool(round(every[place], 3) >= before[place]) if before else None
        what = f"{folder.name}: {name}"
        result += [
            Row(TCPD, what, f"{every[place]:.3f}", wanted, is_met, len(labelled)),
            Row(TCPD, f"{what}, confidence >= {SURE}", f"{sure[place]:.3f}", cases=len(labelled)),
        ]
    return result


def scores(one: Labelled, least: float) -> tuple[float, float]:
    findings = Case(one.values).ask("changepoint").findings
    told = [round((it.at or START_AT) - START_AT) for it in findings if it.confidence >= least]
    inside = sorted(cut for cut in told if 1 <= cut < len(one.values) - 1)
    return f1(one.marks, inside), covering(one.marks, inside, len(one.values))


def nab_row(folder: Path) -> Row:
    """By bench/nab.py, once it is there: `read_folder` and `score_folder(labelled, detect)`."""
    try:
        nab = importlib.import_module("bench.nab")
    except ImportError:
        return not_measured(NAB, "bench/nab.py is not there yet")
    score = float(nab.score_folder(nab.read_folder(folder), alarms_of).score)
    return Row(NAB, folder.name, f"{score:.1f}", f">= {WANTED_NAB:g}", score >= WANTED_NAB)


def alarms_of(series: Series) -> list[int]:
    """
    The samples at which somebody who asks every so often hears of something new.

    Each question sees what came before it and nothing else. A finding that begins before the
    last one told had ended is that one again.
    """
    alarms: list[int] = []
    told_until = -np.inf
    for end in range(ASKED_EVERY, len(series.values) + 1, ASKED_EVERY):
        past = replace(series, times_at=series.times_at[:end], values=series.values[:end])
        findings = run_study("anomaly", past, []).findings
        if any(one.start_at > told_until for one in findings):
            alarms.append(end - 1)
        told_until = max([told_until, *(one.end_at for one in findings)])
    return alarms
