"""The wire types of policies, which have a draft and published versions."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from tollhouse.contract.bounds import (
    PolicyDescription,
    PolicyName,
    PolicyProjectIds,
    PolicyRule,
    PolicyVersionNumber,
    Revision,
    StoredPolicyName,
    ThresholdBasisPoints,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import GIVEN, extension, given

PolicyState = Literal["draft", "monitoring", "enforcing", "paused"]
PolicyDirection = Literal["request", "response", "both"]
PolicyMode = Literal["monitoring", "enforcing"]
PolicyScope = Literal["organization", "projects", "unattached"]

SELECTING_HEADER = "x-tollhouse-selecting-requests"
"""Names the header with the number of latest requests that selected a paused policy (OQ-46)."""

_DEFAULTED = given(default="OQ-103")
_NAMED = given(pattern="OQ-149")


class CreatePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new policy. Defaults are the values with the least effect (OQ-103)."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    name: Annotated[PolicyName, _NAMED]
    rule: PolicyRule
    description: Annotated[PolicyDescription, _DEFAULTED] = ""
    """What the policy is for."""
    direction: Annotated[PolicyDirection, _DEFAULTED] = "both"
    mode: Annotated[PolicyMode, _DEFAULTED] = "monitoring"
    scope: Annotated[PolicyScope, _DEFAULTED] = "unattached"
    """Where it applies by itself: in the organization, in `project_ids`, or only where requests
    name it."""
    project_ids: Annotated[
        PolicyProjectIds, _DEFAULTED, Meta(extra_json_schema={"default": []})
    ] = field(default_factory=list[str])
    """The projects of the scope `projects`."""
    match_threshold_basis_points: Annotated[ThresholdBasisPoints | None, _DEFAULTED] = None
    """The score from which a text matches, in hundredths of a percent; null for the default."""


class EditPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a draft. An absent field is not changed; a null threshold restores the default."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    revision: Revision
    """The policy's latest revision. A stale one is refused with 409."""
    name: Annotated[PolicyName | UnsetType, _NAMED] = UNSET
    description: PolicyDescription | UnsetType = UNSET
    """What the policy is for."""
    rule: PolicyRule | UnsetType = UNSET
    direction: PolicyDirection | UnsetType = UNSET
    mode: PolicyMode | UnsetType = UNSET
    scope: PolicyScope | UnsetType = UNSET
    """Where it applies by itself: in the organization, in `project_ids`, or only where requests
    name it."""
    project_ids: PolicyProjectIds | UnsetType = UNSET
    """The projects of the scope `projects`."""
    match_threshold_basis_points: ThresholdBasisPoints | UnsetType | None = UNSET
    """The score from which a text matches, in hundredths of a percent; null for the default."""


class EditManagedPolicy(EditPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a draft, including the fields that only the management extension has."""

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool | UnsetType = UNSET
    """Whether a match in the first part of a streamed answer ends it."""


class PausePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pauses a policy. `revision` must be the latest, so that no unseen change is paused."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    revision: Revision
    """The policy's latest revision. A stale one is refused with 409."""


class PublishPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publishes a draft. `revision` must be the latest, so that no unseen change is published."""

    mark: ClassVar[Meta] = extension("OQ-102")

    revision: Revision
    """The policy's latest revision. A stale one is refused with 409."""
    refuses_until_judged: bool = False
    """Whether an enforcing policy that the judge cannot answer is published all the same, and
    refuses every request until the judge can."""


class ResumePolicy(PublishPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Resumes a policy. `revision` must be the latest, so that no unseen change is resumed."""

    mark: ClassVar[Meta] = extension("OQ-102")


class RollBackPolicy(PublishPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publishes the content of an older `version` again, under a new number."""

    mark: ClassVar[Meta] = extension("OQ-161")

    version: PolicyVersionNumber
    """The published version whose content is published again."""


class PolicyDraft(Struct, frozen=True, kw_only=True):
    """The editable part of a policy. It applies only after it is published."""

    mark: ClassVar[Meta] = GIVEN

    rule: PolicyRule
    direction: PolicyDirection
    mode: PolicyMode
    scope: PolicyScope
    """Where it applies by itself: in the organization, in `project_ids`, or only where requests
    name it."""
    project_ids: PolicyProjectIds
    """The projects of the scope `projects`."""
    match_threshold_basis_points: ThresholdBasisPoints | None
    """The score from which a text matches, in hundredths of a percent; null for the default."""
    base_version: int
    """The published version from which the draft began, or 0."""


class ManagedPolicyDraft(PolicyDraft, frozen=True, kw_only=True):
    """A draft as the management extension shows it."""

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool
    """Whether a match in the first part of a streamed answer ends it."""


class PublishedPolicy(Struct, frozen=True, kw_only=True):
    """A published version, which never changes."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.policy.version"] = "organization.policy.version"
    id: str
    version: int
    rule: str
    direction: PolicyDirection
    mode: PolicyMode
    scope: PolicyScope
    """Where it applies by itself: in the organization, in `project_ids`, or only where requests
    name it."""
    project_ids: list[str]
    """The projects of the scope `projects`."""
    match_threshold_basis_points: int
    """The score from which a text matches, in hundredths of a percent, as it was at publication."""
    published_at: int
    """When it was published, in Unix seconds."""
    current: bool
    """Whether this is the latest version."""


class ManagedPublishedPolicy(PublishedPolicy, frozen=True, kw_only=True):
    """A published version as the management extension shows it."""

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool
    """Whether a match in the first part of a streamed answer ends it."""


class Policy(Struct, frozen=True, kw_only=True):
    """A policy with its draft."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.policy"] = "organization.policy"
    id: str
    name: StoredPolicyName
    description: PolicyDescription
    """What the policy is for."""
    state: PolicyState
    """Whether it applies: not before its publication (`draft`) and not while it is `paused`."""
    revision: Revision
    """Rises by one with every change. Send it with the next one."""
    has_unpublished_changes: bool
    """Whether the draft differs from what is published."""
    created_at: int
    updated_at: int
    draft: PolicyDraft
    """The part that can be edited."""
    current_version: int | None
    """The number of the latest published version, or null before the first publication."""
    published: Annotated[PublishedPolicy | None, given(null="OQ-107")]
    """The latest published version, or null before the first publication."""


class ManagedPolicy(Policy, frozen=True, kw_only=True):
    """A policy as the management extension shows it."""

    mark: ClassVar[Meta] = extension("OQ-179")

    # All three are declared again, because such a field moves to the end.
    draft: ManagedPolicyDraft
    current_version: int | None
    published: ManagedPublishedPolicy | None


class EffectivePolicy(Struct, frozen=True, kw_only=True):
    """A published policy as it applies to one project."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.effective_policy"] = "organization.effective_policy"
    id: str
    name: str
    version: int
    direction: PolicyDirection
    mode: PolicyMode
    scope: PolicyScope
    """Why it applies to the project: to all of the organization, or to named projects."""
    source: Annotated[str, Meta(examples=["organization"])] = "organization"
    """Who made the policy. Other values may be added."""


class EffectivePolicyList(Struct, frozen=True, kw_only=True):
    """All effective policies in one page, in order of publication."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["list"] = "list"
    data: list[EffectivePolicy]


class PolicyList(ListPage, frozen=True, kw_only=True):
    """A page of policies in order of creation."""

    mark: ClassVar[Meta] = extension("OQ-114")

    data: list[ManagedPolicy]


class PolicyVersionList(ListPage, frozen=True, kw_only=True):
    """A page of a policy's published versions, newest first."""

    mark: ClassVar[Meta] = extension("OQ-114")

    data: list[ManagedPublishedPolicy]


class PolicyDeleted(Struct, frozen=True, kw_only=True):
    """A policy that was never published, and is no more."""

    mark: ClassVar[Meta] = extension("OQ-114")

    id: str
    object: Literal["organization.policy.deleted"] = "organization.policy.deleted"
    deleted: bool
