"""Enforcement of rate limits: a request needs a permit before its body is read.

The call that grants it also takes the tokens that the request is expected to use, where these
leave at least half of each bucket. They are corrected once the exact number is known; only where
more is needed, or where a limit is near, tokens take a call of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from tollhouse.base.clock import Clock
from tollhouse.base.ids import ProjectKeyId
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE, ScopedLimits
from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT
from tollhouse.limits import rules
from tollhouse.limits.commands import LimitCommands, limit_commands
from tollhouse.limits.counter import LimitCounter, LocalLimitCounter
from tollhouse.limits.errors import (
    ConcurrencyLimited,
    Limited,
    RequestsLimited,
    TokensLimited,
)
from tollhouse.limits.redis_connection import Connect, connect
from tollhouse.limits.redis_servers import RedisServers
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

LEASE_SECONDS: Final = 30.0
RENEW_EVERY_SECONDS: Final = 5.0
CHECK_EVERY_SECONDS: Final = 1.0
"""How often a lost Redis is tried again."""
LIMIT_PLANS_MAX: Final = 10_000


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


@dataclass(kw_only=True, slots=True)
class LimitPlan:
    """What is prepared for the requests of one key while its limits stay the same.

    `output_tokens` are those expected beyond the declared size of a request's body: as many as the
    last request used for which the expectation did not fit.
    """

    limits: ScopedLimits
    limit_set: LimitSet
    commands: LimitCommands
    output_tokens: int = OUTPUT_TOKENS_DEFAULT


class Limiter:
    """Grants permits to requests. One per worker.

    Its owner must call `renew_leases` once before the first request, then `check_redis` every
    CHECK_EVERY_SECONDS.
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
        self._clock = clock
        self._renew_at_seconds = 0.0
        self._lease_ms = int(lease_seconds * 1000)
        local = LocalLimitCounter(clock)
        self._servers = RedisServers(
            redis_url,
            tasks,
            held=local.held,
            answer_seconds=answer_seconds,
            lease_ms=self._lease_ms,
            connect=connect,
        )
        self._counter = LimitCounter(local, self._servers)
        self._plans: dict[ProjectKeyId, LimitPlan] = {}

    async def enter(self, limit_subject: LimitSubject) -> Permit:
        """Return a permit for a request; raise RequestsLimited or ConcurrencyLimited.

        The caller must `leave` the permit. If the caller is cancelled here, no slot stays taken.
        """
        plan = self._plans.get(limit_subject.api_key_id)
        if plan is None or plan.limits is not limit_subject.limits:
            plan = self._plan(limit_subject, plan)
            if plan is None:
                return UNCOUNTED
        limit_set, template = plan.limit_set, plan.commands.enter
        tokens = _CountedTokens(declared=limit_subject.declared_tokens)
        if tokens.declared is not None and limit_set.token_limits:
            tokens.expected = tokens.declared + plan.output_tokens
            tokens.costs = rules.token_costs(limit_set.token_limits, tokens.expected)
            template = plan.commands.enter_with_tokens
        request = LimitRequest(
            costs=limit_set.costs,
            slots=limit_set.slots,
            expected=tokens.costs,
            member=str(limit_subject.request_id),
        )
        if not request.costs and not request.slots and not request.expected:
            return _CountedPermit(self._counter, plan, request, tokens, ())
        decision, tokens.are_shared = await self._counter.count(plan.commands, template, request)
        headers = rules.headers(LimitedQuantity.REQUESTS, request.costs, decision.missing_us)
        if decision.refused_by is not None:
            raise _entry_refusal(decision, decision.refused_by, headers)
        tokens.missing_us = decision.expected_missing_us
        if tokens.missing_us is None:
            tokens.costs = ()
        return _CountedPermit(self._counter, plan, request, tokens, headers)

    def _plan(self, limit_subject: LimitSubject, known: LimitPlan | None) -> LimitPlan | None:
        """Return the plan of a key, or None without limits. Making it costs more than counting."""
        limits = limit_subject.limits
        if known is not None and known.limits == limits:
            known.limits = limits
            return known
        self._plans.pop(limit_subject.api_key_id, None)
        if limits == UNLIMITED_EVERYWHERE:
            return None
        if len(self._plans) >= LIMIT_PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        limit_set = rules.limit_set(limit_subject)
        made = LimitPlan(
            limits=limits,
            limit_set=limit_set,
            commands=limit_commands(limit_set, self._lease_ms),
        )
        self._plans[limit_subject.api_key_id] = made
        return made

    async def check_redis(self) -> None:
        """Renew leases if Redis is lost, or has moved, or RENEW_EVERY_SECONDS have passed."""
        is_due = self._clock.monotonic_seconds() >= self._renew_at_seconds
        if is_due or self._servers.needs_attention:
            await self.renew_leases()

    async def renew_leases(self) -> None:
        """Renew the leases of running requests, follow a failover, use a lost Redis again."""
        self._renew_at_seconds = self._clock.monotonic_seconds() + RENEW_EVERY_SECONDS
        await self._servers.renew_leases()

    async def drain(self) -> None:
        """Wait until Redis has answered everything, or is lost."""
        await self._servers.drain()

    async def close(self) -> None:
        """Close the connection to Redis. To be called after the last request."""
        await self._servers.close()


class _CountedTokens(Struct):
    """The tokens that are counted for one request: expected ones first, then the exact number.

    `costs` are what was taken. `missing_us` is the time until each bucket is full again after the
    expected tokens were taken, and None if they were not.
    """

    declared: int | None
    expected: int = 0
    costs: tuple[BucketCost, ...] = ()
    missing_us: tuple[int, ...] | None = None
    are_shared: bool = False


class _CountedPermit(Permit):
    def __init__(
        self,
        counter: LimitCounter,
        plan: LimitPlan,
        entered: LimitRequest,
        tokens: _CountedTokens,
        headers: Headers,
    ) -> None:
        self._counter = counter
        self._plan = plan
        self._entered = entered
        self._tokens = tokens
        self._is_left = False
        self.headers = headers

    @property
    def is_held(self) -> bool:
        return not self._is_left

    async def take_tokens(self, tokens: int) -> None:
        plan, counted = self._plan, self._tokens
        if not plan.limit_set.token_limits:
            return
        costs = rules.token_costs(plan.limit_set.token_limits, tokens)
        if counted.missing_us is not None and tokens <= counted.expected:
            missing_us = self._correct_expected(counted.missing_us, costs)
        else:
            missing_us = await self._take_exactly(costs, tokens)
        counted.costs = costs
        self.headers += rules.headers(LimitedQuantity.TOKENS, costs, missing_us)

    async def _take_exactly(self, costs: tuple[BucketCost, ...], tokens: int) -> Sequence[int]:
        """Give back what was expected, then take the exact number or raise TokensLimited."""
        plan, counted = self._plan, self._tokens
        if counted.declared is not None:
            plan.output_tokens = max(tokens - counted.declared, 0)
        if counted.costs:
            given_back = [(cost, -cost.cost_us) for cost in counted.costs]
            self._counter.correct(plan.commands, given_back, are_shared=counted.are_shared)
            counted.costs, counted.missing_us = (), None
        request = LimitRequest(costs=costs)
        decision, counted.are_shared = await self._counter.count(
            plan.commands, plan.commands.take_tokens, request
        )
        if decision.refused_by is not None:
            self.headers += rules.headers(LimitedQuantity.TOKENS, costs, decision.missing_us)
            raise _token_refusal(decision, decision.refused_by, tokens, self.headers)
        return decision.missing_us

    def _correct_expected(
        self, missing_us: Sequence[int], costs: tuple[BucketCost, ...]
    ) -> Sequence[int]:
        """Correct what was expected to what is needed; return what is missing then."""
        corrections = rules.correction(self._tokens.costs, costs)
        if not corrections:
            return missing_us
        self._counter.correct(self._plan.commands, corrections, are_shared=self._tokens.are_shared)
        corrected_us: list[int] = []
        for left_us, (_, more_us) in zip(missing_us, corrections, strict=True):
            corrected_us.append(left_us + more_us)
        return corrected_us

    def hand_over(self) -> Permit:
        self._is_left = True
        return _CountedPermit(self._counter, self._plan, self._entered, self._tokens, self.headers)

    def leave(self, *, used_tokens: int | None = None) -> None:
        if self._is_left:
            return
        self._is_left = True
        plan, counted = self._plan, self._tokens
        corrections: Corrections = ()
        if counted.costs and used_tokens is not None:
            used = rules.token_costs(plan.limit_set.token_limits, used_tokens)
            corrections = rules.correction(counted.costs, used)
        self._counter.release(
            plan.commands, self._entered, corrections, are_shared=counted.are_shared
        )


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
