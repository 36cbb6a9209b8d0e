"""Quotas of the judge per organization: questions at once, pending evaluations, token rate."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import Quota
from tollhouse.base.rates import OrganizationRate, retry_after_seconds
from tollhouse.evaluation.errors import JudgeTokensExhausted
from tollhouse.observability import bound_metrics


@dataclass(slots=True)
class _OrganizationSlots:
    """The slots of an organization. Dropped when none is used or awaited."""

    slots: asyncio.Semaphore
    users: int = 0


class FairSemaphore:
    """A semaphore with a bound per organization and one for all organizations of the worker.

    A slot of the worker is awaited only with a slot of the organization, so that an organization
    with many questions waits for itself before others wait for it.
    """

    def __init__(self, *, worker_max: int, organization_max: int) -> None:
        self._slots = asyncio.Semaphore(worker_max)
        self._organization_max = organization_max
        self._by_organization: dict[OrganizationId, _OrganizationSlots] = {}

    @asynccontextmanager
    async def slot(self, organization_id: OrganizationId) -> AsyncGenerator[None]:
        """Hold a slot. Waits in the order of arrival."""
        own = self._by_organization.get(organization_id)
        if own is None:
            own = self._by_organization[organization_id] = _OrganizationSlots(
                asyncio.Semaphore(self._organization_max)
            )
        own.users += 1
        try:
            async with own.slots, self._slots:
                yield
        finally:
            own.users -= 1
            if not own.users:
                del self._by_organization[organization_id]


class PendingEvaluations:
    """Counts the waiting and running evaluations of each organization in both modes."""

    def __init__(self, organization_max: int) -> None:
        self.organization_max = organization_max
        self._by_organization: Counter[OrganizationId] = Counter()

    def is_full(self, organization_id: OrganizationId) -> bool:
        """Whether the organization has the maximum number of pending evaluations."""
        return self._by_organization.get(organization_id, 0) >= self.organization_max

    def begin(self, organization_id: OrganizationId) -> None:
        """Count one more until `end`, also beyond the maximum: answers are never refused."""
        self._by_organization[organization_id] += 1

    def end(self, organization_id: OrganizationId) -> None:
        """Count one less, and drop the counter of an organization that has none."""
        self._by_organization[organization_id] -= 1
        if not self._by_organization[organization_id]:
            del self._by_organization[organization_id]


class JudgeTokenRate:
    """The judge tokens per minute of each organization in this worker.

    Monitoring has a separate rate of the same size, so that it never makes enforcing refuse.
    """

    def __init__(self, clock: Clock, *, tokens_per_minute: int) -> None:
        self._tokens_per_minute = tokens_per_minute
        self._enforcing = OrganizationRate(clock, per_minute=tokens_per_minute)
        self._monitoring = OrganizationRate(clock, per_minute=tokens_per_minute)

    def check(self, organization_id: OrganizationId, tokens: int) -> None:
        """Raise `JudgeTokensExhausted` if enforcing cannot acquire so many tokens now."""
        self._refuse(self._enforcing.wait_us(organization_id, tokens), is_monitoring=False)

    def acquire(
        self, organization_id: OrganizationId, tokens: int, *, is_monitoring: bool = False
    ) -> None:
        """Take so many tokens before the judge is asked, or raise `JudgeTokensExhausted`."""
        rate = self._monitoring if is_monitoring else self._enforcing
        self._refuse(rate.acquire(organization_id, tokens), is_monitoring=is_monitoring)

    def adjust(
        self, organization_id: OrganizationId, tokens: int, *, is_monitoring: bool = False
    ) -> None:
        """Charge tokens that were used beyond those acquired. A negative number returns tokens."""
        rate = self._monitoring if is_monitoring else self._enforcing
        rate.charge(organization_id, tokens)

    def _refuse(self, wait_us: int, *, is_monitoring: bool) -> None:
        if not wait_us:
            return
        if not is_monitoring:
            bound_metrics.quota_refused(Quota.JUDGE_TOKENS)
        raise JudgeTokensExhausted(
            tokens_per_minute=self._tokens_per_minute,
            retry_after_seconds=retry_after_seconds(wait_us),
        )
