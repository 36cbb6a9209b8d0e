"""`python -m tests.endurance plots`: the last long run of each kind, drawn and listed in docs.

All runs of the fuzzer and of the simulation are added up.
"""

import statistics
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.endurance import kills
from tests.endurance.fitting import thinned
from tests.endurance.soak import SoakResult
from tests.fuzz import corpus
from tools import long_runs
from tools.long_runs import LongRun

DOCS: Final = Path(__file__).parents[2] / "docs"
EVIDENCE: Final = DOCS / "evidence"
PAGE: Final = DOCS / "availability.md"
FIGURE: Final = DOCS / "images" / "endurance.svg"
BEGIN, END = "<!-- endurance: begin -->\n", "<!-- endurance: end -->\n"
WIDTH, PANEL, LEFT, PLOT = 760, 100, 250, 62
POINTS_MAX: Final = 80
COLOURS: Final = ("#1d4e89", "#d1495b", "#66a182", "#edae49")
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}polyline{fill:none;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}"
)
SOAK_PANELS: Final = {
    "rss_megabytes": "memory of each worker, MB",
    "blocks": "its allocated objects",
    "descriptors": "its open descriptors",
    "tasks": "its tasks",
    "p99_ms": "p99 of a plain request, ms",
}

Points = Sequence[tuple[float, float]]


def rows_of(name: str) -> list[bytes]:
    """Return the recorded lines of one kind of run."""
    path = EVIDENCE / f"{name}.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def panel(title: str, unit: str, lines: Sequence[Points], *, top: int) -> Iterator[str]:
    """Yield one plot from zero; the greatest value and the end of its axis are written at it."""
    points = [point for line in lines for point in line]
    right = max((x for x, _ in points), default=1) or 1
    most = max((y for _, y in points), default=1) or 1
    yield f'<text x="0" y="{top + 20}">{escape(title)}</text>'
    yield f'<text x="0" y="{top + 40}">0 to {most:g}, over {right:g} {escape(unit)}</text>'
    yield (
        f'<path d="M{LEFT} {top}v{PLOT}h{WIDTH - LEFT}" fill="none" stroke="#8a8f98"'
        ' stroke-width="1"/>'
    )
    for colour, line in zip(COLOURS, lines, strict=False):
        places = " ".join(
            f"{LEFT + x / right * (WIDTH - LEFT):.0f},{top + PLOT - y / most * PLOT:.1f}"
            for x, y in thinned(line, POINTS_MAX)
        )
        yield f'<polyline points="{places}" stroke="{colour}"/>'


def figure(panels: Sequence[tuple[str, str, Sequence[Points]]]) -> str:
    """Return the SVG of all plots, one below the other."""
    drawn = [
        line
        for place, (title, unit, lines) in enumerate(panels)
        for line in panel(title, unit, lines, top=8 + PANEL * place)
    ]
    height = PANEL * len(panels)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>Long runs</title><style>{STYLE}</style>",
            *drawn,
            "</svg>\n",
        )
    )


def kill_panel(rounds: Sequence[kills.KillRound]) -> tuple[str, str, Sequence[Points]]:
    """Return the share of orphaned holds that were unsettled so many seconds after the kill."""
    seconds = sorted(each for one in rounds for each in one.unsettled_seconds)
    points = [(each, (place + 1) / len(seconds)) for place, each in enumerate(seconds)]
    return "holds known as unsettled, share", "s after a kill", [[(0.0, 0.0), *points]]


def page(before: str) -> tuple[str, str]:
    """Return the page with its generated part replaced, and the figure."""
    panels: list[tuple[str, str, Sequence[Points]]] = []
    lines = ["| run | size | result |", "|---|---|---|"]
    recorded = kills.read(EVIDENCE / "kills.jsonl")
    if recorded := [each for each in recorded if each.run == recorded[-1].run]:
        lines.append(_kill_row(recorded))
        panels.append(kill_panel(recorded))
    if soaks := [msgspec.json.decode(line, type=SoakResult) for line in rows_of("soak")]:
        lines.append(_soak_row(soaks[-1]))
        panels += [
            (title, "s", [worker.series[name] for worker in soaks[-1].workers])
            for name, title in SOAK_PANELS.items()
        ]
    overloads = [msgspec.json.decode(line) for line in rows_of("overload")]
    if overloads := [each for each in overloads if each.get("run") == overloads[-1].get("run")]:
        lines.append(_overload_row(overloads))
        shares = [(float(number), each["kept_share"]) for number, each in enumerate(overloads, 1)]
        panels.append(("throughput kept at 5 times the load", "minutes", [shares]))
    head, _, rest = before.partition(BEGIN)
    text = "\n".join((*lines, "", *searches(long_runs.read())))
    return f"{head}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", figure(panels)


def searches(runs: Sequence[LongRun]) -> list[str]:
    """Return a table of what looked for inputs and orders of events that break something."""
    rows = ["| search | minutes | tried | findings |", "|---|---|---|---|"]
    for target in corpus.TARGETS:
        of_target = [run for run in runs if run.command == f"python -m tests.fuzz {target}"]
        kept = len(corpus.kept(target))
        tried = f"{sum(run.cases for run in of_target):,} inputs, {kept} of them kept"
        rows.append(_search_row(f"`make fuzz`, `{target}`", of_target, tried))
    simulated = [run for run in runs if run.command == "python -m tests.simulation run"]
    tried = f"{sum(run.cases for run in simulated):,} seeds"
    return [*rows, _search_row("`make simulation`", simulated, tried)]


def _search_row(name: str, runs: Sequence[LongRun], tried: str) -> str:
    minutes = round(sum(run.seconds for run in runs) / 60)
    findings = sum(run.findings for run in runs)
    return f"| {name} | {minutes} | {tried} | {findings} |"


def _kill_row(rounds: Sequence[kills.KillRound]) -> str:
    found: Any = kills.summary(rounds)
    waited = found["unsettled_seconds"]
    return (
        f"| `make kills` | {found['kills']:,} kills, {found['generations']:,} answers generated,"
        f" {found['orphaned']:,} holds left open{stolen([each.stolen_share for each in rounds])}"
        f" | unsettled after p50 {waited['p50']:g} s, p99"
        f" {waited['p99']:g} s, at most {waited['max']:g} s; difference"
        f" {found['difference_pico_usd']} pico-USD, {found['answered_written_off']} whole answers"
        f" written off, {len(found['faults'])} faults |"
    )


def _soak_row(result: SoakResult) -> str:
    slopes = [worker.slopes["rss_megabytes"] for worker in result.workers]
    memory = ", ".join(f"{each.per_hour:+.1f} ± {each.error:.1f}" for each in slopes if each)
    money = result.settlement
    return (
        f"| `make soak` | {result.seconds / 60:.0f} minutes at {result.offered_per_second:g}/s,"
        f" {sum(result.restarts.values())} restarts{stolen([result.stolen_share])} | memory of"
        f" each worker {memory} MB an hour; {money.posted:,} charges, {money.estimated:,} of them"
        f" estimated, {money.written_off} written off, {len(money.faults)} wrong;"
        f" {result.workers_died} workers died |"
    )


def _overload_row(rounds: Sequence[dict[str, Any]]) -> str:
    kept = statistics.median(each["kept_share"] for each in rounds)
    shed = statistics.median(each["shed"].get("p99_ms", 0.0) for each in rounds)
    administration = [each["administration"] for each in rounds]
    served, refused = (sum(each[name] for each in administration) for name in ("served", "refused"))
    offered = statistics.median(each["offered_per_second"] for each in rounds)
    shares = stolen([each.get("stolen_share") for each in rounds])
    return (
        f"| `make overload` | {len(rounds)} minutes at {offered:,.0f}/s{shares} | kept {kept:.0%}"
        f" of the peak, p99 of a refusal {shed:g} ms (medians); administration served {served:,}"
        f" times, refused {refused:,} |"
    )


def stolen(shares: Sequence[float | None]) -> str:
    """Say how much processor time the host gave to others, if every round recorded it."""
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return ""
    return f", {statistics.mean(known):.1%} of processor time stolen by the host"


def write() -> None:
    """Write the page and its figure."""
    text, drawing = page(PAGE.read_text("utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    FIGURE.write_text(drawing, encoding="utf-8")
