"""How many things of a kind one organization may keep. The operator's command line may exceed it.

A quota is checked inside the transaction that creates, behind a lock on the organization: of two
creations at once that would both be the last one, the second sees the first.
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
    Quota.POLICIES_IN_EFFECT: ("policies in effect for one project", "Pause one"),
}

Count = Callable[[Mutation, OrganizationId, int], Awaitable[int]]
"""Counts the organization's own, up to a bound."""


class QuotaExceeded(GatewayError):
    """The organization keeps as many of this kind as it may."""

    kind = Kind.CONFLICT
    code = "quota_exceeded"
    should_retry = False

    def __init__(self, quota: Quota, limit: int) -> None:
        things, advice = _ADVICE[quota]
        super().__init__(
            f"The organization may have {limit} {things}, and has them already. {advice}, or let"
            f" the operator raise quotas.{quota}."
        )
        self.quota = quota


async def require_room(tx: Mutation, quota: Quota, limit: int, count: Count) -> None:
    """Raise `QuotaExceeded` if one more does not fit.

    Creations of one organization wait for each other from here on.
    """
    await tx.execute(
        "SELECT 1 FROM organizations WHERE id = $1 FOR NO KEY UPDATE", tx.organization_id
    )
    if await count(tx, tx.organization_id, limit) >= limit:
        bound_metrics.quota_refused(quota)
        raise QuotaExceeded(quota, limit)
