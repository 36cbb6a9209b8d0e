"""What the rounds of `bench.peers` say: medians, ratios, bars, and the tables that are published.

A ratio is taken inside a round, where a busy moment of the machine met all gateways. Every ratio is
written so that a figure above 1 means that Tollhouse is ahead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Final

from bench.support.peers.known import Runtime

TOLLHOUSE: Final = "Tollhouse"
COMMON_RATE: Final = 20
"""Requests per second that every gateway carries."""
FULL_RATE: Final = 150
"""Requests per second that bench.gateway paces; some gateways do not carry it."""
_LARGER_IS_BETTER: Final = "requests_per_second"
_NOT_CARRIED: Final = "not carried"


@dataclass(frozen=True, kw_only=True)
class GatewayFigures:
    """Of one gateway in one round. The latencies are None if it cannot carry the rate."""

    requests_per_second: float
    cpu_us_per_request: float
    cpu_us_per_chunk: float
    p50_ms: float
    p99_ms: float
    full_rate_p50_ms: float | None
    full_rate_p99_ms: float | None
    memory_mb: float
    postgresql_cpu_us_per_request: float


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """What stands in a row of the table beside the figures."""

    name: str
    version: str
    runtime: Runtime
    configuration: str
    leaves_out: str


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Of all rounds."""

    median: float
    least: float
    most: float


AHEAD: Final = {
    "requests_per_second": "more requests per second",
    "cpu_us_per_request": "less processor time per request",
    "cpu_us_per_chunk": "less processor time per chunk",
    "p50_ms": f"a shorter p50 at {COMMON_RATE} per second",
    "p99_ms": f"a shorter p99 at {COMMON_RATE} per second",
    "memory_mb": "less memory",
}
_COLUMNS: Final = {
    "requests_per_second": "requests per second",
    "cpu_us_per_request": "us per request",
    "cpu_us_per_chunk": "us per chunk",
    "p50_ms": f"p50 at {COMMON_RATE}/s, ms",
    "p99_ms": f"p99 at {COMMON_RATE}/s, ms",
    "full_rate_p50_ms": f"p50 at {FULL_RATE}/s, ms",
    "full_rate_p99_ms": f"p99 at {FULL_RATE}/s, ms",
    "memory_mb": "MB",
}

Round = Mapping[str, GatewayFigures]


def spreads(rounds: Sequence[Round], name: str) -> dict[str, Spread | None]:
    """Return median, least and most of each figure; None if a round has no such figure."""
    rows = [asdict(each[name]) for each in rounds]
    found: dict[str, Spread | None] = {}
    for figure in (each.name for each in fields(GatewayFigures)):
        values: list[float | None] = [row[figure] for row in rows]
        known = [value for value in values if value is not None]
        found[figure] = (
            Spread(
                median=round(median(known), 2),
                least=round(min(known), 2),
                most=round(max(known), 2),
            )
            if len(known) == len(rows)
            else None
        )
    return found


def ratios(rounds: Sequence[Round], name: str) -> dict[str, float]:
    """Return how many times Tollhouse is ahead of a gateway in each figure: medians of rounds."""
    return {
        figure: round(median(_ratio(each, name, figure) for each in rounds), 3) for figure in AHEAD
    }


def _ratio(measured: Round, name: str, figure: str) -> float:
    ours: float = getattr(measured[TOLLHOUSE], figure)
    theirs: float = getattr(measured[name], figure)
    return ours / theirs if figure == _LARGER_IS_BETTER else theirs / ours


def bars(rounds: Sequence[Round], gateways: Sequence[Gateway]) -> dict[str, bool]:
    """Return whether Tollhouse is ahead of every Python and Node gateway, by figure.

    Without such a gateway no bar is held: nothing was compared.
    """
    compared = [
        ratios(rounds, gateway.name)
        for gateway in gateways
        if gateway.name != TOLLHOUSE and gateway.runtime in (Runtime.PYTHON, Runtime.NODE)
    ]
    return {
        f"{words} than every Python and Node gateway": bool(compared)
        and all(ahead[figure] > 1 for ahead in compared)
        for figure, words in AHEAD.items()
    }


def summary(
    rounds: Sequence[Round], gateways: Sequence[Gateway], absent: Mapping[str, str]
) -> dict[str, object]:
    """Return everything that was found, as JSON takes it."""
    return {
        "rounds": len(rounds),
        "gateways": {
            gateway.name: {
                **asdict(gateway),
                **{
                    figure: None if spread is None else asdict(spread)
                    for figure, spread in spreads(rounds, gateway.name).items()
                },
            }
            for gateway in gateways
        },
        "tollhouse_is_ahead_times": {
            gateway.name: ratios(rounds, gateway.name)
            for gateway in gateways
            if gateway.name != TOLLHOUSE
        },
        "bars": bars(rounds, gateways),
        "absent": dict(absent),
    }


def markdown(
    rounds: Sequence[Round], gateways: Sequence[Gateway], absent: Mapping[str, str]
) -> str:
    """Return the published tables: medians, the spread, how far Tollhouse is ahead, and setups."""
    found = {gateway.name: spreads(rounds, gateway.name) for gateway in gateways}
    parts = [
        _table(
            ("", *_COLUMNS.values()),
            [
                (name, *(_median(figures[figure]) for figure in _COLUMNS))
                for name, figures in found.items()
            ],
        ),
        "Least to most of the rounds:",
        _table(
            ("", *_COLUMNS.values()),
            [
                (name, *(_range(figures[figure]) for figure in _COLUMNS))
                for name, figures in found.items()
            ],
        ),
        "How many times Tollhouse is ahead, as medians of the ratios inside a round:",
        _table(
            ("", *(_COLUMNS[figure] for figure in AHEAD)),
            [
                (gateway.name, *(f"{times:.3g}" for times in ratios(rounds, gateway.name).values()))
                for gateway in gateways
                if gateway.name != TOLLHOUSE
            ],
        ),
        _table(
            ("", "version", "written in", "configuration", "does not do"),
            [
                (each.name, each.version, each.runtime, each.configuration, each.leaves_out)
                for each in gateways
            ],
        ),
        "\n".join(
            f"- {words}: {'held' if is_held else '**missed**'}"
            for words, is_held in bars(rounds, gateways).items()
        ),
        *(f"{name} was not measured: {reason}" for name, reason in absent.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _median(spread: Spread | None) -> str:
    return _NOT_CARRIED if spread is None else _number(spread.median)


def _range(spread: Spread | None) -> str:
    if spread is None:
        return _NOT_CARRIED
    return f"{_number(spread.least)} to {_number(spread.most)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"  # noqa: PLR2004 - two digits are enough
