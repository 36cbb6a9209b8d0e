"""Bounds on what one organization may keep in the database or use of a worker."""

from dataclasses import dataclass
from enum import StrEnum


class Quota(StrEnum):
    """What is bounded."""

    ADMIN_REQUESTS = "admin_requests"
    JUDGE_TOKENS = "judge_tokens"
    COUNTED_BYTES = "counted_bytes"
    PENDING_EVALUATIONS = "pending_evaluations"
    PROJECTS = "projects"
    PROJECT_KEYS = "project_keys"
    ADMIN_KEYS = "admin_keys"
    POLICIES = "policies"
    POLICIES_IN_EFFECT = "policies_in_effect"


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationQuotas:
    """How many things of each kind an organization may keep, if its Admin keys create them."""

    projects: int
    project_keys: int
    admin_keys: int
    policies: int
