"""Enforcement of rate limits: a request needs a permit before its body is read."""

from copy import copy
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.ids import ProjectKeyId
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.limits import rules
from tollhouse.limits.counter import (
    LEASE_SECONDS,
    LimitCounter,
    LocalLimitCounter,
    SharedLimitCounter,
)
from tollhouse.limits.errors import (
    ConcurrencyLimited,
    Limited,
    RequestsLimited,
    TokensLimited,
)
from tollhouse.limits.redis_batcher import Connect, connect
from tollhouse.limits.rules import Headers
from tollhouse.limits.types import (
    BucketCost,
    ConcurrencySlot,
    Corrections,
    LimitDecision,
    LimitedQuantity,
    LimitRequest,
    LimitSet,
    LimitSubject,
)
from tollhouse.observability import metrics

RENEW_EVERY_SECONDS: Final = 5.0
LIMIT_SETS_MAX: Final = 10_000


class Permit:
    """The right of one request to run. This one is for callers without limits and counts nothing.

    Its owner releases it by `leave`, or moves it to a new owner by `hand_over`.
    """

    headers: Headers = ()

    @property
    def is_held(self) -> bool:
        """Whether slots are counted for this permit."""
        return False

    async def take_tokens(self, tokens: int) -> None:
        """Take the most tokens that the request may use; call it once. Raises TokensLimited."""

    def hand_over(self) -> "Permit":
        """Return a permit for the new owner; releasing this one has no effect any more."""
        return self

    def leave(self, *, used_tokens: int | None = None) -> None:
        """Release the slots, and correct the counted tokens to those used, if that is known.

        Returns at once. A permit that was released or handed over is not released again.
        """


UNCOUNTED: Final = Permit()


class Limiter:
    """Grants permits to requests. One per worker.

    Its owner must call `renew_leases` every RENEW_EVERY_SECONDS.
    """

    def __init__(
        self,
        clock: Clock,
        tasks: Tasks,
        *,
        redis_url: str | None,
        answer_seconds: float,
        lease_seconds: float = LEASE_SECONDS,
        connect: Connect = connect,
    ) -> None:
        shared = None
        if redis_url is not None:
            shared = SharedLimitCounter(
                redis_url,
                clock,
                tasks,
                answer_seconds=answer_seconds,
                lease_seconds=lease_seconds,
                connect=connect,
            )
        self._counter = LimitCounter(LocalLimitCounter(clock), shared)
        self._limit_sets: dict[ProjectKeyId, LimitSet] = {}

    async def enter(self, limit_subject: LimitSubject) -> Permit:
        """Return a permit for a request; raise RequestsLimited or ConcurrencyLimited.

        The caller must `leave` the permit. If the caller is cancelled here, nothing stays counted.
        """
        if limit_subject.limits == UNLIMITED_EVERYWHERE:
            return UNCOUNTED
        limit_set = self._limit_set(limit_subject)
        request = LimitRequest(
            costs=limit_set.costs, slots=limit_set.slots, member=str(limit_subject.request_id)
        )
        decision, _ = await self._counter.count(request)
        headers = rules.headers(LimitedQuantity.REQUESTS, request.costs, decision.missing_us)
        if decision.refused_by is not None:
            raise _entry_refusal(decision, decision.refused_by, headers)
        return _CountedPermit(self._counter, limit_set, request, headers)

    def _limit_set(self, limit_subject: LimitSubject) -> LimitSet:
        """Return the limits of a key. Cached, because making them costs more than counting."""
        known = self._limit_sets.get(limit_subject.api_key_id)
        if known is not None and known.limits == limit_subject.limits:
            return known
        self._limit_sets.pop(limit_subject.api_key_id, None)
        if len(self._limit_sets) >= LIMIT_SETS_MAX:
            del self._limit_sets[next(iter(self._limit_sets))]
        self._limit_sets[limit_subject.api_key_id] = made = rules.limit_set(limit_subject)
        return made

    async def renew_leases(self) -> None:
        """Renew the leases of running requests; use a lost Redis again once it answers."""
        await self._counter.renew_leases()

    async def close(self) -> None:
        """Close the connection to Redis. To be called after the last request."""
        await self._counter.close()


class _CountedPermit(Permit):
    def __init__(
        self, counter: LimitCounter, limit_set: LimitSet, entered: LimitRequest, headers: Headers
    ) -> None:
        self._counter = counter
        self._limit_set = limit_set
        self._entered = entered
        self._is_left = False
        self._taken: LimitRequest | None = None
        self._is_taken_from_redis = False
        self.headers = headers

    @property
    def is_held(self) -> bool:
        return not self._is_left

    async def take_tokens(self, tokens: int) -> None:
        if not self._limit_set.token_limits:
            return
        request = rules.token_request(self._limit_set, tokens)
        decision, is_from_redis = await self._counter.count(request)
        self.headers += rules.headers(LimitedQuantity.TOKENS, request.costs, decision.missing_us)
        if decision.refused_by is not None:
            raise _token_refusal(decision, decision.refused_by, tokens, self.headers)
        self._taken, self._is_taken_from_redis = request, is_from_redis

    def hand_over(self) -> Permit:
        moved = copy(self)
        self._is_left = True
        return moved

    def leave(self, *, used_tokens: int | None = None) -> None:
        if self._is_left:
            return
        self._is_left = True
        corrections: Corrections = ()
        if self._taken is not None and used_tokens is not None:
            used = rules.token_request(self._limit_set, used_tokens)
            corrections = rules.correction(self._taken, used)
        self._counter.release(self._entered, corrections, are_shared=self._is_taken_from_redis)


def _entry_refusal(
    decision: LimitDecision, refused_by: BucketCost | ConcurrencySlot, headers: Headers
) -> Limited:
    if isinstance(refused_by, ConcurrencySlot):
        metrics.traffic_refused(LimitedQuantity.CONCURRENT, refused_by.scope)
        return ConcurrencyLimited(
            scope=refused_by.scope, limit=refused_by.limit, limit_headers=headers
        )
    metrics.traffic_refused(LimitedQuantity.REQUESTS, refused_by.scope)
    return RequestsLimited(
        scope=refused_by.scope,
        limit=refused_by.limit,
        retry_after_seconds=rules.retry_after_seconds(decision.wait_us),
        limit_headers=headers,
    )


def _token_refusal(
    decision: LimitDecision,
    refused_by: BucketCost | ConcurrencySlot,
    needed: int,
    headers: Headers,
) -> Limited:
    metrics.traffic_refused(LimitedQuantity.TOKENS, refused_by.scope)
    return TokensLimited(
        scope=refused_by.scope,
        limit=refused_by.limit,
        needed=needed,
        retry_after_seconds=rules.retry_after_seconds(decision.wait_us),
        limit_headers=headers,
    )
