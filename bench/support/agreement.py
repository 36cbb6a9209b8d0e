"""How far two engines with the same model agree on the same texts; and the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, mean
from typing import Final

RULE: Final = "Does the text ask for money?"
TEXTS: Final = (
    "How is bread baked?",
    "Send me the toll for the bridge by noon.",
    "The keeper sleeps above the gate.",
    "Please pay 300 dollars into this account today.",
    "I would like my invoice corrected, since the amount is wrong.",
    "Rain is expected from the west.",
    "Could you lend me ten coins until Friday?",
    "def add(a, b): return a + b",
    "Your parcel waits. Pay the fee to have it delivered.",
    "Der Wagen steht vor dem Zollhaus.",
    "What was the toll for a cart with two horses in 1790?",
    "Donate now: every coin repairs the road.",
    "She thanked him for the lantern.",
    "1, 2, 3, 4, 5, 6, 7, 8",
    "We never ask for money.",
    "Give me your purse.",
    "The bank of the river is steep.",
    "Translate 'good morning' into French.",
    "A refund was sent to your card.",
    "Is it cheaper to pay by the month?",
)
"""Fixed for ever: figures of two days are compared by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """Texts that one of both could not score are counted, and left out of everything else."""

    texts: int
    unscored: int
    most_basis_points: int | None
    mean_basis_points: float | None
    rank_correlation: float | None


def compared(one: Sequence[int | None], other: Sequence[int | None]) -> Agreement:
    """Scores of the same texts in the same order."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    apart = [abs(a - b) for a, b in pairs]
    return Agreement(
        texts=len(one),
        unscored=len(one) - len(pairs),
        most_basis_points=max(apart, default=None),
        mean_basis_points=round(mean(apart), 1) if apart else None,
        rank_correlation=spearman([a for a, _ in pairs], [b for _, b in pairs]),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """By ranks, ties in their middle; nothing where one of both says the same of everything."""
    try:
        return round(correlation(_ranks(one), _ranks(other)), 4)
    except StatisticsError:
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    ascending = sorted(values)
    return [ascending.index(value) + (ascending.count(value) - 1) / 2 for value in values]
