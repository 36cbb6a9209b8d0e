"""How many Admin requests of one organization a worker runs at once.

The permit is acquired right after authentication, before the body is read. A request without a
permit waits, because a caller that is refused at once would retry at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import Quota
from tollhouse.observability import bound_metrics

WAITING_MAX: Final = 1_000
"""How many requests of one organization may wait for a permit, each with its connection."""


class TooManyAdminRequests(GatewayError):
    """The organization runs as many Admin requests in this worker as it may."""

    kind = Kind.LIMITED
    code = "concurrency_limit_exceeded"
    retry_after_seconds = 1
    template = (
        "The organization already runs {self.at_once_max} Admin requests at once, and none of them "
        "ended in time. Send fewer at once, or let the operator raise "
        "server.admin_requests_per_organization."
    )
    at_once_max: int


class AdminPermit:
    """The right to run one Admin request. Releasing it twice changes nothing."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """Let the next request of the organization run."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


@dataclass(slots=True)
class _OrganizationShare:
    """One organization's permits; removed when no request holds or awaits one."""

    permits: asyncio.Semaphore
    requests: int = 0


class AdminPermits:
    """One per worker."""

    def __init__(self, *, at_once_max: int, wait_seconds: float) -> None:
        self._at_once_max = at_once_max
        self._wait_seconds = wait_seconds
        self._shares: dict[OrganizationId, _OrganizationShare] = {}

    async def acquire(self, organization_id: OrganizationId) -> AdminPermit:
        """Wait for a permit, in the order of arrival. Raises `TooManyAdminRequests`."""
        share = self._shares.get(organization_id)
        if share is None:
            share = self._shares[organization_id] = _OrganizationShare(
                asyncio.Semaphore(self._at_once_max)
            )
        if share.requests >= self._at_once_max + WAITING_MAX:
            raise self._refusal()
        share.requests += 1
        try:
            await asyncio.wait_for(share.permits.acquire(), self._wait_seconds)
        except TimeoutError:
            self._forget(organization_id, share)
            raise self._refusal() from None
        except BaseException:
            self._forget(organization_id, share)
            raise
        return AdminPermit(partial(self._release, organization_id, share))

    def _release(self, organization_id: OrganizationId, share: _OrganizationShare) -> None:
        share.permits.release()
        self._forget(organization_id, share)

    def _forget(self, organization_id: OrganizationId, share: _OrganizationShare) -> None:
        share.requests -= 1
        if not share.requests:
            del self._shares[organization_id]

    def _refusal(self) -> TooManyAdminRequests:
        bound_metrics.quota_refused(Quota.ADMIN_REQUESTS)
        return TooManyAdminRequests(at_once_max=self._at_once_max)
