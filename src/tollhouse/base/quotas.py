"""Bounds on what one organization may keep in the database or use of a worker."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tollhouse.base.ids import OrganizationId

ORGANIZATION_SHARE: Final = 4
"""One organization may use this part of a worker's quota: 1 in 4."""


class Quota(StrEnum):
    """The name of a bound, in messages and metrics."""

    ADMIN_REQUESTS = "admin_requests"
    JUDGE_TOKENS = "judge_tokens"
    COUNTED_BYTES = "counted_bytes"
    PENDING_EVALUATIONS = "pending_evaluations"
    PROJECTS = "projects"
    PROJECT_KEYS = "project_keys"
    ADMIN_KEYS = "admin_keys"
    POLICIES = "policies"
    POLICIES_IN_EFFECT = "policies_in_effect"
    ALERT_SUBSCRIPTIONS = "alert_subscriptions"


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationQuotas:
    """How many objects of each kind the Admin keys of an organization may create."""

    projects: int
    project_keys: int
    admin_keys: int
    policies: int
    alert_subscriptions: int


class WorkerQuota:
    """An amount that all organizations of a worker share, with a smaller bound for each one."""

    def __init__(self, worker_max: int) -> None:
        self._worker_max = worker_max
        self.organization_max = max(1, worker_max // ORGANIZATION_SHARE)
        self._by_organization: dict[OrganizationId, int] = {}
        self.used = 0

    def acquire(self, organization_id: OrganizationId, amount: int) -> bool:
        """Use this amount. Returns False, and uses nothing, if it exceeds a bound."""
        if self.exceeds_share(organization_id, amount) or self.used + amount > self._worker_max:
            return False
        self._by_organization[organization_id] = self.used_by(organization_id) + amount
        self.used += amount
        return True

    def exceeds_share(self, organization_id: OrganizationId, amount: int) -> bool:
        """Return whether this amount exceeds the organization's own bound."""
        return self.used_by(organization_id) + amount > self.organization_max

    def used_by(self, organization_id: OrganizationId) -> int:
        """Return the amount that an organization uses now."""
        return self._by_organization.get(organization_id, 0)

    def release(self, organization_id: OrganizationId, amount: int) -> None:
        """Return this amount to the quota."""
        self.used -= amount
        left = self._by_organization.pop(organization_id, 0) - amount
        if left > 0:
            self._by_organization[organization_id] = left
