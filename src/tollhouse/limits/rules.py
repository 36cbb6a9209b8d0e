"""Rules of rate limits, without I/O, in whole microseconds.

A bucket holds one minute's worth and fills evenly (GCRA). Its state is one number, the instant at
which it is full again; an unused bucket is full now.
"""

from collections.abc import Sequence
from typing import Final

from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import (
    BucketCost,
    ConcurrencySlot,
    Corrections,
    LimitDecision,
    LimitedQuantity,
    LimitRequest,
    LimitScope,
    LimitSet,
    LimitSubject,
)

MINUTE_US: Final = 60_000_000
SECOND_US: Final = 1_000_000
MILLISECOND_US: Final = 1_000

Headers = tuple[tuple[str, str], ...]


def limit_set(limit_subject: LimitSubject) -> LimitSet:
    """Return the buckets and slots of all scopes that limit a key."""
    scopes = _scopes(limit_subject)
    return LimitSet(
        costs=tuple(
            request_cost(scope, _key(limit_subject, LimitedQuantity.REQUESTS, scope_id), limit)
            for scope, scope_id, limits in scopes
            if (limit := limits.requests_per_minute) is not None
        ),
        slots=tuple(
            ConcurrencySlot(
                scope=scope,
                key=_key(limit_subject, LimitedQuantity.CONCURRENT, scope_id),
                limit=limit,
            )
            for scope, scope_id, limits in scopes
            if (limit := limits.concurrent_requests) is not None
        ),
        token_limits=tuple(
            (scope, _key(limit_subject, LimitedQuantity.TOKENS, scope_id), limit)
            for scope, scope_id, limits in scopes
            if (limit := limits.tokens_per_minute) is not None
        ),
    )


def token_costs(
    limits: Sequence[tuple[LimitScope, str, int]], tokens: int
) -> tuple[BucketCost, ...]:
    """Return the costs of `tokens`; a number above a limit costs the whole bucket."""
    costs: tuple[BucketCost, ...] = ()
    for scope, key, limit in limits:
        cost_us = min(-(-tokens * MINUTE_US // limit), MINUTE_US)
        costs += (
            BucketCost(scope=scope, key=key, limit=limit, cost_us=cost_us, full_us=MINUTE_US),
        )
    return costs


def request_cost(scope: LimitScope, key: str, limit: int) -> BucketCost:
    """Return the cost of one request, rounded up so that the limit is not exceeded.

    A full bucket has room for as many requests as the limit.
    """
    cost_us = -(-MINUTE_US // limit)
    return BucketCost(scope=scope, key=key, limit=limit, cost_us=cost_us, full_us=limit * cost_us)


def missing_us(cost: BucketCost, full_at_us: int, now_us: int) -> int:
    """Return the time until the bucket is full, at most `full_us` even if the clock went back."""
    return min(max(full_at_us - now_us, 0), cost.full_us)


def decide(
    ask: LimitRequest,
    *,
    full_at_us: Sequence[int],
    taken_slots: Sequence[int],
    expected_full_at_us: Sequence[int] = (),
    now_us: int,
) -> LimitDecision:
    """Grant all or nothing. If several buckets refuse, name the one with the longest wait."""
    missing = tuple(
        missing_us(cost, instant, now_us)
        for cost, instant in zip(ask.costs, full_at_us, strict=True)
    )
    waits = [
        left + cost.cost_us - cost.full_us for cost, left in zip(ask.costs, missing, strict=True)
    ]
    longest_us = max(waits, default=0)
    if longest_us > 0:
        refusing = ask.costs[waits.index(longest_us)]
        return LimitDecision(missing_us=missing, refused_by=refusing, wait_us=longest_us)
    for slot, taken in zip(ask.slots, taken_slots, strict=True):
        if taken >= slot.limit:
            return LimitDecision(missing_us=missing, refused_by=slot)
    return LimitDecision(
        missing_us=tuple(
            left + cost.cost_us for cost, left in zip(ask.costs, missing, strict=True)
        ),
        expected_missing_us=_take_expected(ask.expected, expected_full_at_us, now_us),
    )


def _take_expected(
    costs: Sequence[BucketCost], full_at_us: Sequence[int], now_us: int
) -> tuple[int, ...] | None:
    """Take all or nothing. The half that stays is for requests that must fit exactly."""
    missing = tuple(
        missing_us(cost, instant, now_us) + cost.cost_us
        for cost, instant in zip(costs, full_at_us, strict=True)
    )
    is_easy = all(2 * left <= cost.full_us for cost, left in zip(costs, missing, strict=True))
    return missing if costs and is_easy else None


def correction(taken: Sequence[BucketCost], used: Sequence[BucketCost]) -> Corrections:
    """Return the corrections of all buckets, or none if `used` is what was taken."""
    corrections: list[tuple[BucketCost, int]] = []
    is_needed = False
    for before, after in zip(taken, used, strict=True):
        more_us = after.cost_us - before.cost_us
        is_needed = is_needed or more_us != 0
        corrections.append((after, more_us))
    return corrections if is_needed else ()


def corrected_us(cost: BucketCost, missing: int, more_us: int) -> int:
    """Return the missing time after a correction, from 0 to the whole bucket."""
    return min(max(missing + more_us, 0), cost.full_us)


def headers(kind: LimitedQuantity, costs: Sequence[BucketCost], missing: Sequence[int]) -> Headers:
    """Return OpenAI's three headers for the scope that has the least left."""
    if not costs:
        return ()
    scopes: list[tuple[int, int, int]] = []
    for cost, missing_us in zip(costs, missing, strict=True):
        left = (cost.full_us - missing_us) * cost.limit // cost.full_us
        scopes.append((left, cost.limit, missing_us))
    left, limit, reset_us = min(scopes)
    return (
        (f"x-ratelimit-limit-{kind}", str(limit)),
        (f"x-ratelimit-remaining-{kind}", str(left)),
        (f"x-ratelimit-reset-{kind}", duration_text(reset_us)),
    )


def duration_text(duration_us: int) -> str:
    """Format a duration as OpenAI does: `12ms`, `1.5s`, `6m0s`; rounded up to milliseconds."""
    rounded_us = -(-duration_us // MILLISECOND_US) * MILLISECOND_US
    if 0 < rounded_us < SECOND_US:
        return f"{rounded_us // MILLISECOND_US}ms"
    minutes, rest_us = divmod(rounded_us, MINUTE_US)
    seconds, thousandths = divmod(rest_us // MILLISECOND_US, SECOND_US // MILLISECOND_US)
    fraction = f".{thousandths:03d}".rstrip("0") if thousandths else ""
    return f"{minutes}m{seconds}{fraction}s" if minutes else f"{seconds}{fraction}s"


def retry_after_seconds(wait_us: int) -> int:
    """Return the wait in whole seconds, rounded up, from 1 to `RETRY_AFTER_SECONDS_MAX`."""
    return min(max(-(-wait_us // SECOND_US), 1), RETRY_AFTER_SECONDS_MAX)


def _scopes(limit_subject: LimitSubject) -> tuple[tuple[LimitScope, object, TrafficLimits], ...]:
    ids = (limit_subject.organization_id, limit_subject.project_id, limit_subject.api_key_id)
    return tuple(zip(LimitScope, ids, limit_subject.limits, strict=True))


def _key(limit_subject: LimitSubject, kind: LimitedQuantity, scope_id: object) -> str:
    """Return a key; the part in braces puts an organization's keys on one Redis Cluster node."""
    return f"tollhouse:{{{limit_subject.organization_id}}}:{kind}:{scope_id}"
