"""The gate for traffic, before a byte of the body is read."""

from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.limits import rules
from tollhouse.limits.counting import Correctable, Counting
from tollhouse.limits.errors import ConcurrencyLimited, RequestsLimited, TokensLimited
from tollhouse.limits.local import LocalCounting
from tollhouse.limits.rules import Headers
from tollhouse.limits.shared import LEASE_SECONDS, SharedCounting
from tollhouse.limits.types import Ask, Counted, Decision, Entrant, Slot
from tollhouse.observability import metrics

TEND_EVERY_SECONDS: Final = 5.0


class Pass:
    """Who is inside. This one is for callers without limits, and counts nothing."""

    headers: Headers = ()

    async def take_tokens(self, tokens: int) -> None:
        """Take, once, what the request may use at most; raises TokensLimited."""

    def correct_tokens(self, used: int) -> None:
        """Say what it has used after all; nobody waits."""

    def leave(self) -> None:
        """Give the slots back; a second time changes nothing, and nobody waits."""


UNCOUNTED: Final = Pass()


class Limiter:
    """One per worker. Somebody has to call `tend` every TEND_EVERY_SECONDS."""

    def __init__(
        self,
        clock: Clock,
        tasks: Tasks,
        *,
        redis_url: str | None,
        answer_seconds: float,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        shared = None
        if redis_url is not None:
            shared = SharedCounting(
                redis_url,
                clock,
                tasks,
                answer_seconds=answer_seconds,
                lease_seconds=lease_seconds,
            )
        self._counting = Counting(LocalCounting(clock), shared)

    async def enter(self, entrant: Entrant) -> Pass:
        """Count a request in; raises RequestsLimited, ConcurrencyLimited.

        Whoever gets a pass must leave. A caller who is cancelled here has not entered.
        """
        if entrant.limits == UNLIMITED_EVERYWHERE:
            return UNCOUNTED
        ask = rules.to_enter(entrant)
        decision, _ = await self._counting.count(ask)
        headers = rules.headers(Counted.REQUESTS, ask.draws, decision.missing_us)
        _refuse_entry(decision, headers)
        self._counting.hold(ask)
        return _CountedPass(self._counting, entrant, ask, headers)

    async def tend(self) -> None:
        """Renew the leases of what runs here; see whether a lost Redis is back."""
        await self._counting.tend()

    async def close(self) -> None:
        """Called when no request is left."""
        await self._counting.close()


class _CountedPass(Pass):
    def __init__(
        self, counting: Counting, entrant: Entrant, entered: Ask, headers: Headers
    ) -> None:
        self._counting = counting
        self._entrant = entrant
        self._entered = entered
        self._is_inside = True
        self._taken: tuple[Ask, Correctable] | None = None
        self.headers = headers

    async def take_tokens(self, tokens: int) -> None:
        ask = rules.to_take(self._entrant, tokens)
        if not ask.draws:
            return
        decision, granter = await self._counting.count(ask)
        self.headers += rules.headers(Counted.TOKENS, ask.draws, decision.missing_us)
        _refuse_tokens(decision, tokens, self.headers)
        self._taken = (ask, granter)

    def correct_tokens(self, used: int) -> None:
        if self._taken is None:
            return
        (taken, granter), self._taken = self._taken, None
        corrections = rules.correction(taken, rules.to_take(self._entrant, used))
        if corrections:
            granter.correct(corrections)

    def leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._counting.leave(self._entered)


def _refuse_entry(decision: Decision, headers: Headers) -> None:
    refusing = decision.refused_by
    if refusing is None:
        return
    if isinstance(refusing, Slot):
        metrics.traffic_refused(Counted.CONCURRENT, refusing.scope)
        raise ConcurrencyLimited(refusing.scope, refusing.limit, headers=headers)
    metrics.traffic_refused(Counted.REQUESTS, refusing.scope)
    raise RequestsLimited(
        refusing.scope,
        refusing.limit,
        retry_after_seconds=rules.retry_after_seconds(decision.wait_us),
        headers=headers,
    )


def _refuse_tokens(decision: Decision, needed: int, headers: Headers) -> None:
    refusing = decision.refused_by
    if refusing is None:
        return
    metrics.traffic_refused(Counted.TOKENS, refusing.scope)
    raise TokensLimited(
        refusing.scope,
        refusing.limit,
        needed=needed,
        retry_after_seconds=rules.retry_after_seconds(decision.wait_us),
        headers=headers,
    )
