"""The policy, its publications, and what applies to a project."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import UNSET, UnsetType

from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId

DRAFT_VERSION: Final = 0
"""Publications count from one."""


class PolicyState(StrEnum):
    """A published policy is in its mode, or paused."""

    DRAFT = "draft"
    MONITORING = "monitoring"
    ENFORCING = "enforcing"
    PAUSED = "paused"


class Direction(StrEnum):
    """What is judged: what goes to the model, what comes back, or both."""

    REQUEST = "request"
    RESPONSE = "response"
    BOTH = "both"


class Mode(StrEnum):
    """Whether a match is only recorded or also refused."""

    MONITORING = "monitoring"
    ENFORCING = "enforcing"


class Scope(StrEnum):
    """Where a policy applies by itself. An unattached one applies only where it is asked for."""

    ORGANIZATION = "organization"
    PROJECTS = "projects"
    UNATTACHED = "unattached"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyContent:
    """What is drafted and published. Without a threshold, the deployment's default is meant."""

    rule: str
    direction: Direction
    mode: Mode
    scope: Scope
    project_ids: tuple[ProjectId, ...]
    match_threshold_basis_points: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyVersion:
    """A publication: it never changes. The threshold in force was settled when it was made."""

    organization_id: OrganizationId
    policy_id: PolicyId
    number: int
    content: PolicyContent
    threshold_in_force_basis_points: int
    published_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """`published` is the current version; `base_version` the one that the draft started from."""

    organization_id: OrganizationId
    id: PolicyId
    name: str
    description: str
    state: PolicyState
    revision: int
    draft: PolicyContent
    base_version: int
    published: PolicyVersion | None
    created_at: datetime
    updated_at: datetime

    @property
    def current_version(self) -> int | None:
        """The number of the current version; nothing before the first publication."""
        return None if self.published is None else self.published.number

    @property
    def has_unpublished_changes(self) -> bool:
        """Whether the draft says something else; name and description are not part of it."""
        return self.published is None or self.draft != self.published.content

    @property
    def is_in_effect(self) -> bool:
        """Whether the current version is applied where its scope says."""
        return self.state in {PolicyState.MONITORING, PolicyState.ENFORCING}


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyEdit:
    """What is left out stays as it is; a threshold of nothing restores the default."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    rule: str | UnsetType = UNSET
    direction: Direction | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    project_ids: tuple[ProjectId, ...] | UnsetType = UNSET
    match_threshold_basis_points: int | UnsetType | None = UNSET


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectivePolicy:
    """A current version as it applies to one project by itself."""

    id: PolicyId
    name: str
    version: int
    direction: Direction
    mode: Mode
    scope: Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedPolicy:
    """All that judging needs of a current version."""

    id: PolicyId
    version: int
    rule: str
    direction: Direction
    mode: Mode
    match_threshold_basis_points: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySnapshot:
    """What applies to one project by itself, at one number of the organization's counter."""

    policy_version: int
    policies: tuple[AppliedPolicy, ...]
