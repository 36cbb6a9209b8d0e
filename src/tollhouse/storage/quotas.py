"""Quotas: how many resources of a kind an organization may have. The command line may exceed them.

A quota is checked in the transaction that creates the resource, under a lock on the organization,
so that two concurrent creations cannot both be the last one.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import Quota
from tollhouse.observability import bound_metrics
from tollhouse.storage.database import Mutation

_ADVICE: Final = {
    Quota.PROJECTS: ("projects", "Archive one"),
    Quota.PROJECT_KEYS: ("project keys", "Revoke one"),
    Quota.ADMIN_KEYS: ("Admin keys", "Revoke one"),
    Quota.POLICIES: ("policies", "Edit one that is no longer needed"),
    Quota.ALERT_SUBSCRIPTIONS: ("alert subscriptions", "Delete one"),
    Quota.POLICIES_IN_EFFECT: ("policies in effect for one project", "Pause one"),
}

Count = Callable[[Mutation, OrganizationId, int], Awaitable[int]]
"""Counts the organization's resources of one kind, up to a bound."""


class QuotaExceeded(GatewayError):
    """The organization keeps as many of this kind as it may."""

    kind = Kind.CONFLICT
    code = "quota_exceeded"
    should_retry = False
    template = (
        "The organization may have {self.limit} {self.things}, and has them already. "
        "{self.advice}, or let the operator raise quotas.{self.quota}."
    )

    def __init__(self, quota: Quota, limit: int) -> None:
        self.quota = quota
        things, advice = _ADVICE[quota]
        super().__init__(limit=limit, things=things, advice=advice)


async def require_room(tx: Mutation, quota: Quota, limit: int, count: Count) -> None:
    """Raise `QuotaExceeded` if the organization has `limit` resources of this kind already.

    Locks the organization: its other creations wait until the transaction ends.
    """
    await tx.execute(
        "SELECT 1 FROM organizations WHERE id = $1 FOR NO KEY UPDATE", tx.organization_id
    )
    if await count(tx, tx.organization_id, limit) >= limit:
        bound_metrics.quota_refused(quota)
        raise QuotaExceeded(quota, limit)
