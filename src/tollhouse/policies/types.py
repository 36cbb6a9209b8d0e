"""Types for policies, their published versions, and the policies that apply."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import UNSET, UnsetType

from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.base.policies import Direction, Mode

DRAFT_VERSION: Final = 0
"""The version of a draft. Published versions count from one."""


class PolicyState(StrEnum):
    """The state of a policy. A published policy has the state of its mode, or is paused."""

    DRAFT = "draft"
    MONITORING = "monitoring"
    ENFORCING = "enforcing"
    PAUSED = "paused"


class PolicyScope(StrEnum):
    """The requests a policy applies to; if unattached, only those that name it."""

    ORGANIZATION = "organization"
    PROJECTS = "projects"
    UNATTACHED = "unattached"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyContent:
    """The content of a draft or a version. Without a threshold, the deployment's default applies.

    With `ends_answer_early`, a match in the part of an answer that has arrived ends the answer.
    """

    rule: str
    direction: Direction
    mode: Mode
    scope: PolicyScope
    project_ids: tuple[ProjectId, ...]
    match_threshold_basis_points: int | None
    ends_answer_early: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyVersion:
    """A published version, which never changes. Its threshold in force is set at publication."""

    organization_id: OrganizationId
    policy_id: PolicyId
    number: int
    content: PolicyContent
    threshold_in_force_basis_points: int
    published_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """A policy. `published` is its current version, `base_version` the origin of its draft."""

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
        """The number of the current version, or None before the first publication."""
        return None if self.published is None else self.published.number

    @property
    def has_unpublished_changes(self) -> bool:
        """Whether the draft differs from the current version. Excludes name and description."""
        return self.published is None or self.draft != self.published.content

    @property
    def is_in_effect(self) -> bool:
        """Whether the current version applies to the requests of its scope."""
        return self.state in {PolicyState.MONITORING, PolicyState.ENFORCING}


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyEdit:
    """Changes of a policy. Unset fields stay as they are; a threshold of None is the default."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    rule: str | UnsetType = UNSET
    direction: Direction | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    scope: PolicyScope | UnsetType = UNSET
    project_ids: tuple[ProjectId, ...] | UnsetType = UNSET
    match_threshold_basis_points: int | UnsetType | None = UNSET
    ends_answer_early: bool | UnsetType = UNSET


@dataclass(frozen=True, kw_only=True, slots=True)
class Publish:
    """Publishes the draft, with this threshold if it has none."""

    default_threshold_basis_points: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Resume:
    """Applies a paused policy again, in the mode of its current version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RollBack:
    """Publishes the content of an older version as the next version."""

    version: int


Publication = Publish | Resume | RollBack
"""A change by which a version of a policy begins to apply."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectivePolicy:
    """A current version that applies to all requests of one project."""

    id: PolicyId
    name: str
    version: int
    direction: Direction
    mode: Mode
    scope: PolicyScope


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedPolicy:
    """The fields of a version or a draft that an evaluation needs."""

    id: PolicyId
    version: int
    rule: str
    direction: Direction
    mode: Mode
    match_threshold_basis_points: int
    ends_answer_early: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySnapshot:
    """Policies that apply together, at one policy version of the organization.

    `paused` are policies that a request selects and that are skipped.
    """

    policy_version: int
    policies: tuple[AppliedPolicy, ...]
    paused: tuple[AppliedPolicy, ...] = ()
