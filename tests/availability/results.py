"""What a round showed, where it is kept, and the table that is made of it."""

import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from tests.availability.faults import FAULTS
from tests.availability.setups import SETUPS

REPOSITORY = Path(__file__).parents[2]
KEPT = REPOSITORY / "docs" / "evidence" / "availability.jsonl"
PAGE = REPOSITORY / "docs" / "availability.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"


@dataclass(frozen=True, kw_only=True)
class Money:
    """The answers of all callers, compared with the ledger."""

    answers: int
    streams: int
    broken_streams: int
    uncharged: int
    overcharged: int
    seconds_until_settled: float
    is_settled: bool
    is_verified: bool

    @property
    def is_exact(self) -> bool:
        """Whether every answer was charged once, and nothing else is held or charged."""
        wrong = self.uncharged + self.overcharged + self.broken_streams
        return wrong == 0 and self.is_settled and self.is_verified


@dataclass(frozen=True, kw_only=True)
class Round:
    """The figures of one fault, done once."""

    setup: str
    fault: str
    seconds_without_service: float
    seconds_after_promotion: float | None
    """From the moment at which a new primary could commit to the first answer; None without one."""
    statuses: dict[str, int]
    replaced_workers: int
    copied_standbys: int
    """Standbys that did not follow the new primary by themselves."""
    is_history_kept: bool
    """False if a primary with an older timeline came back: all commits of the newer are lost."""
    money: Money


def record(shown: Round) -> None:
    """Append the round to the file that the run names, if it names one."""
    if (path := os.environ.get("TOLLHOUSE_AVAILABILITY_RESULTS")) is not None:
        with Path(path).open("a", encoding="utf-8") as kept:
            kept.write(msgspec.json.encode(shown).decode() + "\n")


def read() -> list[Round]:
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Round) for line in lines]


def table(rounds: Iterable[Round]) -> str:
    """Return one table for each setup."""
    ordered = sorted(rounds, key=lambda each: (list(SETUPS).index(each.setup), _order(each.fault)))
    parts: list[str] = []
    for setup, of_setup in groupby(ordered, key=lambda each: each.setup):
        parts += [f"### {SETUPS[setup].words}\n", _HEAD]
        for fault, of_fault in groupby(of_setup, key=lambda each: each.fault):
            parts.append(_row(fault, list(of_fault)))
        parts.append("")
    return "\n".join(parts)


_HEAD = (
    "| fault | rounds | seconds without service: median, longest | seconds after the new primary, "
    "longest | answers | other statuses | money |\n|---|---|---|---|---|---|---|"
)


def _row(fault: str, rounds: Sequence[Round]) -> str:
    seconds = [each.seconds_without_service for each in rounds]
    after = [
        each.seconds_after_promotion for each in rounds if each.seconds_after_promotion is not None
    ]
    statuses: Counter[str] = Counter()
    for each in rounds:
        statuses.update(each.statuses)
    served = statuses.pop("200", 0)
    others = ", ".join(f"{count} of `{status}`" for status, count in sorted(statuses.items()))
    streams = sum(each.money.streams for each in rounds)
    cells = (
        FAULTS[fault].words,
        str(len(rounds)),
        f"{statistics.median(seconds):.1f}, {max(seconds):.1f}",
        f"{max(after):.1f}" if after else "no new primary",
        f"{served:,}, of which {streams:,} streams",
        others or "none",
        _money(rounds),
    )
    return f"| {' | '.join(cells)} |"


def _money(rounds: Sequence[Round]) -> str:
    money = [each.money for each in rounds]
    if all(each.is_exact for each in money):
        longest = max(each.seconds_until_settled for each in money)
        return f"exact; all settled {longest:.1f} s later"
    uncharged = sum(each.uncharged for each in money)
    overcharged = sum(each.overcharged for each in money)
    broken = sum(each.broken_streams for each in money)
    held = sum(not each.is_settled for each in money)
    return (
        f"**{uncharged} uncharged, {overcharged} overcharged, {broken} broken streams, {held} "
        "rounds with a hold left**"
    )


def _order(fault: str) -> int:
    return list(FAULTS).index(fault)


def page(text: str, rounds: Iterable[Round]) -> str:
    """Return the page with its generated part made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(rounds)}\n{END}{tail}"


if __name__ == "__main__":
    written = page(PAGE.read_text(encoding="utf-8"), read())
    PAGE.write_text(written, encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
