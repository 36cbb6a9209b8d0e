"""The gate for traffic, before a byte of the body is read."""

from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.ids import ProjectKeyId
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.limits import rules
from tollhouse.limits.counting import Counting
from tollhouse.limits.errors import ConcurrencyLimited, RequestsLimited, TokensLimited
from tollhouse.limits.local import LocalCounting
from tollhouse.limits.rules import Headers
from tollhouse.limits.shared import LEASE_SECONDS, SharedCounting
from tollhouse.limits.types import Ask, Corrections, Counted, Decision, Entrant, Slot, Terms
from tollhouse.observability import metrics

TEND_EVERY_SECONDS: Final = 5.0
TERMS_MAX: Final = 10_000


class Pass:
    """Who is inside. This one is for callers without limits, and counts nothing."""

    headers: Headers = ()

    async def take_tokens(self, tokens: int) -> None:
        """Take, once, what the request may use at most; raises TokensLimited."""

    def leave(self, *, used_tokens: int | None = None) -> None:
        """Give the slots back, and say what was used of the tokens, if that is known.

        A second time changes nothing, and nobody waits.
        """


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
        self._terms_by_key: dict[ProjectKeyId, Terms] = {}

    async def enter(self, entrant: Entrant) -> Pass:
        """Count a request in; raises RequestsLimited, ConcurrencyLimited.

        Whoever gets a pass must leave. A caller who is cancelled here has not entered.
        """
        if entrant.limits == UNLIMITED_EVERYWHERE:
            return UNCOUNTED
        terms = self._terms(entrant)
        ask = Ask(draws=terms.draws, slots=terms.slots, member=str(entrant.request_id))
        decision, _ = await self._counting.count(ask)
        headers = rules.headers(Counted.REQUESTS, ask.draws, decision.missing_us)
        _refuse_entry(decision, headers)
        self._counting.hold(ask)
        return _CountedPass(self._counting, terms, ask, headers)

    def _terms(self, entrant: Entrant) -> Terms:
        """Made anew where the limits have changed; otherwise that would cost more than counting."""
        known = self._terms_by_key.get(entrant.api_key_id)
        if known is not None and known.limits == entrant.limits:
            return known
        self._terms_by_key.pop(entrant.api_key_id, None)
        if len(self._terms_by_key) >= TERMS_MAX:
            del self._terms_by_key[next(iter(self._terms_by_key))]
        self._terms_by_key[entrant.api_key_id] = made = rules.terms(entrant)
        return made

    async def tend(self) -> None:
        """Renew the leases of what runs here; see whether a lost Redis is back."""
        await self._counting.tend()

    async def close(self) -> None:
        """Called when no request is left."""
        await self._counting.close()


class _CountedPass(Pass):
    def __init__(self, counting: Counting, terms: Terms, entered: Ask, headers: Headers) -> None:
        self._counting = counting
        self._terms = terms
        self._entered = entered
        self._is_inside = True
        self._taken: Ask | None = None
        self._is_taken_from_redis = False
        self.headers = headers

    async def take_tokens(self, tokens: int) -> None:
        if not self._terms.token_limits:
            return
        ask = rules.token_ask(self._terms, tokens)
        decision, is_from_redis = await self._counting.count(ask)
        self.headers += rules.headers(Counted.TOKENS, ask.draws, decision.missing_us)
        _refuse_tokens(decision, tokens, self.headers)
        self._taken, self._is_taken_from_redis = ask, is_from_redis

    def leave(self, *, used_tokens: int | None = None) -> None:
        if not self._is_inside:
            return
        self._is_inside = False
        corrections: Corrections = ()
        if self._taken is not None and used_tokens is not None:
            used = rules.token_ask(self._terms, used_tokens)
            corrections = rules.correction(self._taken, used)
        self._counting.leave(self._entered, corrections, are_shared=self._is_taken_from_redis)


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
