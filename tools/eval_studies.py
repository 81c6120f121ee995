"""
Scores every study against an independent judge's generators and on labelled data: one table.

    python -m tools.eval_studies [--seeds 1,2] [--size 40] [--only forecasts,changes] [--json] [FOLDER...]

The table has what is wanted, what was measured, and whether that is met. Its series come
from bench/judge, by seeds that are chosen at run time unless given, and printed. A folder
is laid out as TCPD (annotations.json, series/) or as NAB (windows.json and CSV files
below); those under NODESCOPE_SAMPLES are taken when none is given. One default setting for
all series. --tuned scores the sets that the studies were tuned on.
"""

import argparse
import json
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from bench import anomalies, change_sets, nab
from bench import studies_sets as sets
from bench.judge.runner import SECTIONS, progress_bar, run
from bench.judge.score import labelled
from bench.judge.table import render
from bench.studies_baselines import BASELINES
from bench.studies_scores import Labelled, covering, f1, read_labelled
from numpy.typing import NDArray
from tools import eval_changes

from nodescope.use.studies import STUDIES, Series, StudyAnswer, anomaly, correlation
from nodescope.use.studies.maths.change_search import find_changes

FloatArray = NDArray[np.float64]
START_AT = 1_700_000_000.0
# The part of the table that needs folders.
LABELLED = "labelled"

# Default scores on all 32 univariate series of the benchmark's later edition
# (TCPDBench, aggregate_scores_wide.tex @ eabf3c0a), for folders whose README
# has no table of its own.
PUBLISHED_32 = {
    "BINSEG": (0.698, 0.672),
    "PELT": (0.674, 0.652),
    "BOCPD": (0.662, 0.594),
    "AMOC": (0.653, 0.668),
    "ZERO": (0.645, 0.566),
}


def main() -> int:
    arguments = parser().parse_args()
    seeds = read_seeds(arguments.seeds)
    folders = labelled_folders(arguments.folders)
    if arguments.tuned:
        print_tuned(seeds[0], arguments.size or 600)
        return 0
    for folder in folders if not arguments.json else ():
        (print_tcpd if (folder / "annotations.json").exists() else print_nab)(folder)
    print_table(read_parts(arguments.only), seeds, arguments.size or 40, arguments.folders, arguments.json)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tools.eval_studies",
        description="Score the studies on the judge's series and on labelled folders.",
    )
    made.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="FOLDER",
        help="laid out as TCPD or NAB, or holding such folders; those of NODESCOPE_SAMPLES unless given",
    )
    made.add_argument("--seeds", default="", help="numbers, separated by commas; one is chosen unless given")
    made.add_argument("--size", type=int, help="series of each class for each seed; 40 unless given")
    made.add_argument(
        "--only", default="", help=f"parts, separated by commas: {', '.join([*SECTIONS, LABELLED])}"
    )
    made.add_argument("--json", action="store_true", help="the rows as JSON instead of the table")
    made.add_argument("--tuned", action="store_true", help="score the sets the studies were tuned on instead")
    return made


def read_seeds(text: str) -> list[int]:
    words = text.split(",") if text else [str(secrets.randbelow(2**32))]
    if not all(word.strip().isdecimal() for word in words):
        raise SystemExit(f"--seeds: whole numbers from 0, separated by commas, got {text!r}")
    return [int(word) for word in words]


def read_parts(text: str) -> list[str]:
    known = [*SECTIONS, LABELLED]
    names = text.split(",") if text else known
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"--only: no part {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def print_table(names: list[str], seeds: list[int], size: int, folders: list[Path], as_json: bool) -> None:
    generated = [name for name in names if name != LABELLED]
    rows = run(generated, seeds, size, progress_bar()) if generated else []
    rows += labelled.rows(folders) if LABELLED in names else []
    if as_json:
        print(json.dumps({"seeds": seeds, "size": size, "rows": [row.plain() for row in rows]}, indent=1))
    else:
        print(f"Seeds {','.join(map(str, seeds))}, {size} series of a class for each\n\n{render(rows)}")


def print_tuned(seed: int, size: int) -> None:
    print(f"\nGenerated series of the tuning sets, seed {seed}")
    for table in (
        print_false_changes,
        print_calibration,
        print_periods,
        print_trends,
        print_causes,
        print_alarms,
    ):
        table(np.random.default_rng(seed), size)


def labelled_folders(folders: Iterable[Path]) -> list[Path]:
    """The folders given, or the labelled folders directly below them."""
    found = [
        place for folder in folders for place in (folder, *sorted(folder.glob("*"))) if is_labelled(place)
    ]
    for folder in folders:
        if not folder.is_dir():
            raise SystemExit(f"{folder}: no such folder")
    return found


def is_labelled(folder: Path) -> bool:
    return (folder / "annotations.json").exists() or (folder / "windows.json").exists()


def ask(name: str, values: FloatArray, limit: float | None = None, unit: str = "") -> StudyAnswer:
    times_at = START_AT + np.arange(len(values), dtype=np.float64)
    return STUDIES[name].run(Series(times_at, values, limit=limit, unit=unit, metric="value"))


def changes_by_study(values: FloatArray) -> list[int]:
    return sorted(
        round((finding.at or START_AT) - START_AT) for finding in ask("changepoint", values).findings
    )


def print_tcpd(folder: Path) -> None:
    labelled = read_labelled(folder)
    print(
        f"\nChange points, {folder.name}: {len(labelled)} series, F1 (margin 5) and covering over all annotators"
    )
    detectors: dict[str, Callable[[FloatArray], list[int]]] = {"nodescope": changes_by_study, **BASELINES}
    for name, detect in detectors.items():
        began = time.perf_counter()
        scores = np.array([score_of(one, detect) for one in labelled])
        each_ms = 1000 * (time.perf_counter() - began) / max(len(labelled), 1)
        print(
            f"  {name:28} {scores[:, 0].mean():.3f} / {scores[:, 1].mean():.3f}   {each_ms:6.1f} ms a series"
        )
        if name == "nodescope":
            for one, (precise, covered) in zip(labelled, scores):
                print(f"      {one.name:24} {precise:.3f} / {covered:.3f}")
    here = published_here(folder / "README.md")
    print(f"  published defaults, {'on these series' if here else 'on all 32 series of the benchmark'}")
    for name, (precise, covered) in (here or PUBLISHED_32).items():
        print(f"  {name:28.28} {precise:.3f} / {covered:.3f}")


def score_of(one: Labelled, detect: Callable[[FloatArray], list[int]]) -> tuple[float, float]:
    held = np.isfinite(one.values)
    index = np.arange(len(one.values))
    if detect is not changes_by_study:
        found = [int(index[held][cut]) for cut in detect(one.values[held])]
    else:
        found = detect(one.values)
    found = [cut for cut in found if 1 <= cut < len(one.values) - 1]
    return f1(one.marks, found), covering(one.marks, found, len(one.values))


def published_here(readme: Path) -> dict[str, tuple[float, float]]:
    """The rows `| method | F1 | cover |` of a folder's own README."""
    rows: dict[str, tuple[float, float]] = {}
    for line in readme.read_text().splitlines() if readme.exists() else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and all(cell.replace(".", "", 1).isdigit() for cell in cells[1:]):
            rows[cells[0]] = (float(cells[1]), float(cells[2]))
    return rows


def print_nab(folder: Path) -> None:
    """NAB's own score of the alarms of one walk; daily periods found. Not a change point target."""
    labelled = nab.read_folder(folder)
    print(f"\nAnomalies, {folder.name}: {len(labelled)} series, one walk through each")
    score, (found, windows, false) = anomalies.score_nab(labelled, anomalies.walked)
    print(f"  standard score {score:.1f}   windows found {found} of {windows}   false alarms {false}")
    daily = sum(has_daily_period(one.series) for one in labelled)
    print(f"  series with a daily period   {daily} of {len(labelled)}")
    print("  published, standard score on realAWSCloudwatch: HTM 73.4, windowed Gaussian 31.2, BOCPD 39.7")


def has_daily_period(series: Series) -> bool:
    findings = STUDIES["periodicity"].run(series).findings
    periods = [float(finding.measures["period_seconds"] or 0) for finding in findings]
    return any(abs(period / 86400 - 1) < 0.05 for period in periods)


def print_false_changes(random: np.random.Generator, size: int) -> None:
    print(f"\nFalse change points per 1,200 samples ({size // 20} series each): nodescope, plain BOCPD")
    for name, maker in sets.BACKGROUNDS.items():
        made = [maker(random, 1200) for _ in range(size // 20)]
        ours = np.mean([len(find_changes(values)) for values in made])
        plain = np.mean([len(BASELINES["plain BOCPD"](values)) for values in made[:3]])
        print(f"  {name:28} {ours:6.2f} {plain:8.1f}")


def print_calibration(random: np.random.Generator, size: int) -> None:
    """The share of findings that are real, on the families of bench/change_sets.py."""
    for family, classes in change_sets.FAMILIES.items():
        eval_changes.print_calibration(random, family, max(1, size // 2 // len(classes)))


def print_periods(random: np.random.Generator, size: int) -> None:
    """Recall over planted periods; precision counts every report that is no planted period nor its harmonic."""
    hits = planted = wrong = alarms = 0
    by_impairment: dict[str, list[float]] = {}
    for place in range(size):
        case = sets.periodic_case(random, sets.IMPAIRMENTS[place % len(sets.IMPAIRMENTS)])
        periods = reported(case.values)
        seen = [any(is_same(period, true) for period in periods) for true in case.periods]
        by_impairment.setdefault(case.name.split(",")[0], []).extend(float(one) for one in seen)
        hits, planted = hits + sum(seen), planted + len(seen)
        wrong += sum(not is_explained(period, case.periods) for period in periods)
    kinds = list(sets.APERIODIC)
    by_kind: dict[str, int] = {}
    for place in range(size):
        kind = kinds[place % len(kinds)]
        periods = reported(sets.aperiodic_case(random, kind).values)
        wrong, alarms = wrong + len(periods), alarms + bool(periods)
        by_kind[kind] = by_kind.get(kind, 0) + bool(periods)
    print(
        f"\nPeriodicity, {size} periodic and {size} aperiodic series (research trial 0.916 / 0.958 / 0.025; FFT+ACF 0.87 / 0.59 / 0.34)"
    )
    print(
        f"  recall {hits / planted:.3f}   precision {hits / (hits + wrong):.3f}   reports on aperiodic {alarms / size:.4f}"
    )
    print(
        "  recall by kind   "
        + ", ".join(f"{name} {np.mean(seen):.2f}" for name, seen in by_impairment.items())
    )
    print(
        "  reports by kind  "
        + (", ".join(f"{name} {count}" for name, count in by_kind.items() if count) or "none")
    )


def reported(values: FloatArray) -> list[float]:
    return [float(finding.measures["period_seconds"] or 0) for finding in ask("periodicity", values).findings]


def is_same(period: float, true: float) -> bool:
    return abs(period - true) <= max(1.0, 0.05 * true)


def is_explained(period: float, trues: tuple[float, ...]) -> bool:
    return any(is_same(period, true * m) or is_same(period, true / m) for true in trues for m in range(1, 6))


def print_trends(random: np.random.Generator, size: int) -> None:
    count = min(200, size)
    inside = leaks = 0
    for _ in range(count):
        case = sets.leak_case(random)
        findings = ask("trend", case.values * 2**20, case.limit * 2**20, "bytes").findings
        leaks += bool(findings) and findings[0].measures["verdict"] == "leak"
        inside += bool(findings) and is_inside(case.samples_to_limit, findings[0].measures)
    caches = [
        ask("trend", sets.filling_cache(random) * 2**20, 100 * 2**20, "bytes").findings for _ in range(count)
    ]
    wrong = sum(bool(findings) and findings[0].measures["verdict"] == "leak" for findings in caches)
    noise = sum(bool(ask("trend", sets.autoregressive(random, 1800, 0.7)).findings) for _ in range(count))
    print(
        f"\nTrend: {leaks} of {count} leaks told; time to limit inside its 90 % interval in {inside / count:.1%}"
    )
    print(f"  caches that level off called leaks {wrong} of {count}; trends seen in noise {noise} of {count}")


def is_inside(true: float, measures: object) -> bool:
    low, high = (dict(measures).get(name) for name in ("low", "high"))  # type: ignore[call-overload]
    return low is not None and low <= true and (high is None or true <= high)


def print_causes(random: np.random.Generator, size: int) -> None:
    count = max(20, size // 10)
    times_at = START_AT + np.arange(1200, dtype=np.float64)
    first_three = lags = others = 0
    for _ in range(count):
        case = sets.cause_case(random)
        compared = [Series(times_at, values, metric=str(place)) for place, values in enumerate(case.others)]
        findings = correlation.study(Series(times_at, case.target, metric="target"), compared).findings
        names = [finding.measures["other"] for finding in findings]
        place = names.index(str(case.cause)) if str(case.cause) in names else 99
        first_three += place < 3
        lags += place < 3 and abs(float(findings[place].measures["lag_seconds"] or 0) - case.lag) <= 2
        others += sum(name != str(case.cause) for name in names)
    print(
        f"\nCorrelation: planted cause in the first three in {first_three / count:.1%} of {count}; lag within 2 s in {lags / count:.1%}"
    )
    print(f"  other series told: {others / count:.2f} per question, of 29")


def print_alarms(random: np.random.Generator, size: int) -> None:
    count = max(50, size // 4)
    print(
        f"\nAnomaly: alarms on windows without one ({count} each; stated {anomaly.FALSE_ALARMS:.0%}), found when 20 samples rise by 5 deviations"
    )
    rates = []
    for name in (
        "white",
        "heavy tails",
        "Poisson",
        "autoregressive 0.5",
        "autoregressive 0.9",
        "pink",
        "cron spikes",
    ):
        false = found = 0
        for _ in range(count):
            values = sets.BACKGROUNDS[name](random, int(random.integers(300, 3600)))
            false += ask("anomaly", values).status == "found"
            values[-20:] += 5 * values.std()
            found += ask("anomaly", values).status == "found"
        rates.append(false / count)
        print(f"  {name:28} {false / count:.3f}   {found / count:.2f}")
    print(f"  {'all':28} {np.mean(rates):.4f}")


if __name__ == "__main__":
    raise SystemExit(main())
