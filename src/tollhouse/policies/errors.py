"""Errors of policies."""

from collections.abc import Sequence

from tollhouse.base.errors import (
    GatewayError,
    InvalidInput,
    Kind,
    ServiceUnavailable,
    listed_ids,
)


class PolicyNotFound(GatewayError):
    """The policy does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "policy_not_found"
    param = "policy_id"
    template = (
        "No such policy in this organization. `GET /manage/v1/organization/policies` lists them."
    )


class SelectedPolicyNotFound(GatewayError):
    """A policy of the request does not exist, was never published, or is another organization's."""

    kind = Kind.NOT_FOUND
    code = "policy_not_found"
    param = "policy_ids"
    template = (
        "No published policy of this organization has {self.ids}. Take {self.them} out of "
        "'policy_ids', or publish {self.them} first. `GET /manage/v1/organization/policies` lists "
        "policies to an Admin API key."
    )

    def __init__(self, unknown: Sequence[str]) -> None:
        self.unknown = tuple(unknown)
        super().__init__(ids=listed_ids(unknown), them="it" if len(unknown) == 1 else "them")


class PolicyVersionNotFound(GatewayError):
    """The policy has no version of this number."""

    kind = Kind.NOT_FOUND
    code = "policy_version_not_found"
    param = "version"
    template = (
        "The policy has no such version. `GET "
        "/manage/v1/organization/policies/{{policy_id}}/versions` lists them."
    )


class TargetNotFound(GatewayError):
    """A project does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_ids"
    template = (
        "No project of this organization has {self.ids}. "
        "`GET /manage/v1/organization/projects` lists them."
    )

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(ids=listed_ids(unknown))


class NoAnswerToEnd(InvalidInput):
    """A policy that judges only requests cannot end an answer early."""

    code = "invalid_parameter_combination"
    template = "Only a policy that judges answers can have 'ends_answer_early'."
    param: str | None


class StaleRevision(GatewayError):
    """The policy was changed after the caller read it."""

    kind = Kind.CONFLICT
    code = "revision_conflict"
    should_retry = False
    param = "revision"
    template = (
        "Revision {self.sent} is not the latest, which is {self.latest}. Read the policy again."
    )
    sent: int
    latest: int


class RevisionsExhausted(GatewayError):
    """The policy has reached the highest revision number."""

    kind = Kind.CONFLICT
    code = "revision_conflict"
    should_retry = False
    param = "revision"
    template = "The policy can not be changed any more. Create a new one."


class PolicyStateConflict(GatewayError):
    """The policy's state does not allow the change."""

    kind = Kind.CONFLICT
    code = "policy_state_conflict"
    should_retry = False
    param = "policy_id"
    template = (
        "The policy's state is '{self.state}', which does not allow this change. Read the policy "
        "again."
    )
    state: str


class VersionIsCurrent(GatewayError):
    """The policy already has this version, so that a rollback would change nothing."""

    kind = Kind.CONFLICT
    code = "policy_state_conflict"
    should_retry = False
    param = "version"
    template = "This version is the current one already. Name an earlier version."


class SnapshotBehind(ServiceUnavailable):
    """The newest policies of the organization could not be read, and old ones are not used."""

    template = "The organization's policies could not be read. Try again shortly."
