"""How traffic is counted, as pure decisions on whole microseconds.

A bucket holds one minute's worth and fills evenly (GCRA). It is known by one number, the instant
at which it is full again; one that nobody has drawn from is full now.
"""

from collections.abc import Sequence
from typing import Final

from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX
from tollhouse.base.traffic import TrafficLimits
from tollhouse.limits.types import (
    Ask,
    Corrections,
    Counted,
    Decision,
    Draw,
    Entrant,
    Scope,
    Slot,
    Terms,
)

MINUTE_US: Final = 60_000_000
SECOND_US: Final = 1_000_000
MILLISECOND_US: Final = 1_000

Headers = tuple[tuple[str, str], ...]


def terms(entrant: Entrant) -> Terms:
    """One request out of every scope's bucket, a slot in every scope, and tokens later."""
    scopes = _scopes(entrant)
    return Terms(
        limits=entrant.limits,
        draws=tuple(
            request_draw(scope, _key(entrant, Counted.REQUESTS, scope_id), limit)
            for scope, scope_id, limits in scopes
            if (limit := limits.requests_per_minute) is not None
        ),
        slots=tuple(
            Slot(scope=scope, key=_key(entrant, Counted.CONCURRENT, scope_id), limit=limit)
            for scope, scope_id, limits in scopes
            if (limit := limits.concurrent_requests) is not None
        ),
        token_limits=tuple(
            (scope, _key(entrant, Counted.TOKENS, scope_id), limit)
            for scope, scope_id, limits in scopes
            if (limit := limits.tokens_per_minute) is not None
        ),
    )


def token_ask(terms: Terms, tokens: int) -> Ask:
    """So many tokens out of every scope's bucket."""
    return Ask(draws=tuple(token_draw(*limit, tokens) for limit in terms.token_limits))


def request_draw(scope: Scope, key: str, limit: int) -> Draw:
    """Rounded up, so that the limit is not exceeded; as many as the limit fit in at once."""
    cost_us = -(-MINUTE_US // limit)
    return Draw(scope=scope, key=key, limit=limit, cost_us=cost_us, full_us=limit * cost_us)


def token_draw(scope: Scope, key: str, limit: int, tokens: int) -> Draw:
    """What is larger than the whole bucket takes all of it, and so needs it full."""
    cost_us = min(-(-tokens * MINUTE_US // limit), MINUTE_US)
    return Draw(scope=scope, key=key, limit=limit, cost_us=cost_us, full_us=MINUTE_US)


def missing_us(draw: Draw, full_at_us: int, now_us: int) -> int:
    """How long the bucket still fills. A clock that went back leaves it empty, never below."""
    return min(max(full_at_us - now_us, 0), draw.full_us)


def decide(
    ask: Ask, *, full_at_us: Sequence[int], taken_slots: Sequence[int], now_us: int
) -> Decision:
    """All or nothing. Of several buckets that refuse, the one to wait longest for is named."""
    missing = tuple(
        missing_us(draw, instant, now_us)
        for draw, instant in zip(ask.draws, full_at_us, strict=True)
    )
    waits = [
        left + draw.cost_us - draw.full_us for draw, left in zip(ask.draws, missing, strict=True)
    ]
    longest_us = max(waits, default=0)
    if longest_us > 0:
        refusing = ask.draws[waits.index(longest_us)]
        return Decision(missing_us=missing, refused_by=refusing, wait_us=longest_us)
    for slot, taken in zip(ask.slots, taken_slots, strict=True):
        if taken >= slot.limit:
            return Decision(missing_us=missing, refused_by=slot)
    return Decision(
        missing_us=tuple(left + draw.cost_us for draw, left in zip(ask.draws, missing, strict=True))
    )


def correction(taken: Ask, used: Ask) -> Corrections:
    """Where another number of tokens was used than taken."""
    return tuple(
        (after, after.cost_us - before.cost_us)
        for before, after in zip(taken.draws, used.draws, strict=True)
        if after.cost_us != before.cost_us
    )


def corrected_us(draw: Draw, missing: int, more_us: int) -> int:
    """Never below empty, never above full."""
    return min(max(missing + more_us, 0), draw.full_us)


def headers(kind: Counted, draws: Sequence[Draw], missing: Sequence[int]) -> Headers:
    """OpenAI's three, of the scope that has the least left."""
    if not draws:
        return ()
    left, limit, reset_us = min(
        (_left(draw, gone_us), draw.limit, gone_us)
        for draw, gone_us in zip(draws, missing, strict=True)
    )
    return (
        (f"x-ratelimit-limit-{kind}", str(limit)),
        (f"x-ratelimit-remaining-{kind}", str(left)),
        (f"x-ratelimit-reset-{kind}", duration_text(reset_us)),
    )


def _left(draw: Draw, missing: int) -> int:
    return (draw.full_us - missing) * draw.limit // draw.full_us


def duration_text(duration_us: int) -> str:
    """As Go writes it, and so OpenAI: `12ms`, `1.5s`, `6m0s`; rounded up to milliseconds."""
    rounded_us = -(-duration_us // MILLISECOND_US) * MILLISECOND_US
    if 0 < rounded_us < SECOND_US:
        return f"{rounded_us // MILLISECOND_US}ms"
    minutes, rest_us = divmod(rounded_us, MINUTE_US)
    seconds, thousandths = divmod(rest_us // MILLISECOND_US, SECOND_US // MILLISECOND_US)
    fraction = f".{thousandths:03d}".rstrip("0") if thousandths else ""
    return f"{minutes}m{seconds}{fraction}s" if minutes else f"{seconds}{fraction}s"


def retry_after_seconds(wait_us: int) -> int:
    """Whole seconds, rounded up, at least one."""
    return min(max(-(-wait_us // SECOND_US), 1), RETRY_AFTER_SECONDS_MAX)


def _scopes(entrant: Entrant) -> tuple[tuple[Scope, object, TrafficLimits], ...]:
    ids = (entrant.organization_id, entrant.project_id, entrant.api_key_id)
    return tuple(zip(Scope, ids, entrant.limits, strict=True))


def _key(entrant: Entrant, kind: Counted, scope_id: object) -> str:
    """What stands in braces decides the slot of a Redis Cluster: one for each organization."""
    return f"tollhouse:{{{entrant.organization_id}}}:{kind}:{scope_id}"
