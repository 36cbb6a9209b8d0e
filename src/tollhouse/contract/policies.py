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

_DEFAULTED = given(default="OQ-103")
_NAMED = given(pattern="OQ-149")


class CreatePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new policy. Defaults are the values with the least effect (OQ-103)."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    name: Annotated[PolicyName, _NAMED]
    rule: PolicyRule
    description: Annotated[PolicyDescription, _DEFAULTED] = ""
    direction: Annotated[PolicyDirection, _DEFAULTED] = "both"
    mode: Annotated[PolicyMode, _DEFAULTED] = "monitoring"
    scope: Annotated[PolicyScope, _DEFAULTED] = "unattached"
    project_ids: Annotated[
        PolicyProjectIds, _DEFAULTED, Meta(extra_json_schema={"default": []})
    ] = field(default_factory=list[str])
    match_threshold_basis_points: Annotated[ThresholdBasisPoints | None, _DEFAULTED] = None


class EditPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a draft. An absent field is not changed; a null threshold restores the default."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    revision: Revision
    name: Annotated[PolicyName | UnsetType, _NAMED] = UNSET
    description: PolicyDescription | UnsetType = UNSET
    rule: PolicyRule | UnsetType = UNSET
    direction: PolicyDirection | UnsetType = UNSET
    mode: PolicyMode | UnsetType = UNSET
    scope: PolicyScope | UnsetType = UNSET
    project_ids: PolicyProjectIds | UnsetType = UNSET
    match_threshold_basis_points: ThresholdBasisPoints | UnsetType | None = UNSET


class EditManagedPolicy(EditPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a draft, including the fields that only the management extension has."""

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool | UnsetType = UNSET


class PausePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pauses a policy. `revision` must be the latest, so that no unseen change is paused."""

    mark: ClassVar[Meta] = given(additionalProperties="OQ-198")

    revision: Revision


class PublishPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publishes a draft. `revision` must be the latest, so that no unseen change is published."""

    mark: ClassVar[Meta] = extension("OQ-102")

    revision: Revision


class ResumePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Resumes a policy. `revision` must be the latest, so that no unseen change is resumed."""

    mark: ClassVar[Meta] = extension("OQ-102")

    revision: Revision


class RollBackPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publishes the content of an older `version` again, under a new number."""

    mark: ClassVar[Meta] = extension("OQ-161")

    revision: Revision
    version: PolicyVersionNumber


class PolicyDraft(Struct, frozen=True, kw_only=True):
    """The editable part of a policy. It applies only after it is published."""

    mark: ClassVar[Meta] = GIVEN

    rule: PolicyRule
    direction: PolicyDirection
    mode: PolicyMode
    scope: PolicyScope
    project_ids: PolicyProjectIds
    match_threshold_basis_points: ThresholdBasisPoints | None
    base_version: int


class ManagedPolicyDraft(PolicyDraft, frozen=True, kw_only=True):
    """A draft as the management extension shows it.

    With `ends_answer_early`, a match in the first part of an answer ends the answer.
    """

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool


class PublishedPolicy(Struct, frozen=True, kw_only=True):
    """A published version, which never changes. The threshold is the one at publication."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.policy.version"] = "organization.policy.version"
    id: str
    version: int
    rule: str
    direction: PolicyDirection
    mode: PolicyMode
    scope: PolicyScope
    project_ids: list[str]
    match_threshold_basis_points: int
    published_at: int
    current: bool


class ManagedPublishedPolicy(PublishedPolicy, frozen=True, kw_only=True):
    """A published version as the management extension shows it."""

    mark: ClassVar[Meta] = extension("OQ-179")

    ends_answer_early: bool


class Policy(Struct, frozen=True, kw_only=True):
    """A policy with its draft. `published` is null before the first publication."""

    mark: ClassVar[Meta] = GIVEN

    object: Literal["organization.policy"] = "organization.policy"
    id: str
    name: StoredPolicyName
    description: PolicyDescription
    state: PolicyState
    revision: Revision
    has_unpublished_changes: bool
    created_at: int
    updated_at: int
    draft: PolicyDraft
    current_version: int | None
    published: Annotated[PublishedPolicy | None, given(null="OQ-107")]


class ManagedPolicy(Policy, frozen=True, kw_only=True):
    """A policy as the management extension shows it, with `ends_answer_early`."""

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
    source: Annotated[str, Meta(examples=["organization"])] = "organization"


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
