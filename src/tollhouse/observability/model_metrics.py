"""Metrics of models, from the records of requests, and the lengths of queues."""

from collections.abc import Callable
from functools import cache
from typing import Final, Literal

from tollhouse.observability.buffered_metrics import (
    BufferedCounter,
    BufferedGauge,
    BufferedHistogram,
)
from tollhouse.observability.registry import registry

_tokens = BufferedCounter(
    "tollhouse_tokens_total",
    "Tokens of settled requests, by model and kind: input, cached_input or output.",
    ["model", "kind"],
    registry=registry,
)
_cost_pico_usd = BufferedCounter(
    "tollhouse_cost_pico_usd_total",
    "Pico-dollars that organizations paid for requests, by model; unsettled ones are not included.",
    ["model"],
    registry=registry,
)
_first_token_seconds = BufferedHistogram(
    "tollhouse_first_token_seconds",
    "Time from the head of a streamed request to the first event of its answer, by model.",
    ["model"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
    registry=registry,
)
_candidates = BufferedGauge(
    "tollhouse_model_candidates",
    "Models that could answer for a model now, itself and its fallbacks: those with a replica that"
    " is not avoided. The least of any worker.",
    ["model"],
    multiprocess_mode="livemin",
    registry=registry,
)
_queue_length = BufferedGauge(
    "tollhouse_queue_length",
    "Items that wait in a queue of the workers: ledger, activity, decisions, monitoring, or"
    " unidentified (records of requests whose key could not be looked up).",
    ["queue"],
    multiprocess_mode="livesum",
    registry=registry,
)

TokenKind = Literal["input", "cached_input", "output"]
QueueName = Literal["ledger", "activity", "unidentified", "decisions", "monitoring"]

# Finding a child by its labels costs as much as counting. Labels are models of the catalog.
_tokens_of: Final = cache(_tokens.labels)


def tokens_used(model: str, kind: TokenKind, count: int) -> None:
    """Add tokens of a settled request."""
    _tokens_of(model, kind).add(count)


def cost_settled(model: str, pico_usd: int) -> None:
    """Add what a request cost its organization."""
    _cost_pico_usd.labels(model).add(pico_usd)


def first_token_sent(model: str, *, seconds: float) -> None:
    """Record the time to the first event of a stream."""
    _first_token_seconds.labels(model).record(seconds)


def candidates(model: str, count: int) -> None:
    """Set how many models could answer for a model."""
    _candidates.labels(model).set(count)


def read_queue_length(queue: QueueName, source: Callable[[], int]) -> None:
    """Set the length of a queue of this worker to what `source` returns at each write."""
    _queue_length.labels(queue).read_from(source)
