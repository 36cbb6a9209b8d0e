"""How verbs on policies fail."""

from collections.abc import Sequence

from tollhouse.base.errors import (
    GatewayError,
    InvalidRequest,
    Kind,
    ServiceUnavailable,
    listed,
    listed_ids,
)


class PolicyNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "policy_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such policy in this organization. "
            "`GET /manage/v1/organization/policies` lists them.",
            param="policy_id",
        )


class SelectedPolicyNotFound(GatewayError):
    """A request names a policy that is unknown, another organization's, or never published."""

    kind = Kind.NOT_FOUND
    code = "policy_not_found"

    def __init__(self, unknown: Sequence[str]) -> None:
        them = "it" if len(unknown) == 1 else "them"
        super().__init__(
            f"No published policy of this organization has {listed_ids(unknown)}. Take {them} out "
            f"of 'policy_ids', or publish {them} first. "
            "`GET /manage/v1/organization/policies` lists policies to an Admin API key.",
            param="policy_ids",
        )
        self.unknown = tuple(unknown)


class SelectedPolicyPaused(GatewayError):
    """The request selects a paused policy, and a selected policy is never skipped."""

    # OQ-46.
    kind = Kind.CONFLICT
    code = "policy_paused"
    should_retry = False

    def __init__(self, paused: Sequence[str]) -> None:
        are, them = ("policy is", "it") if len(paused) == 1 else ("policies are", "them")
        super().__init__(
            f"The selected {are} paused and cannot judge the request: {listed(paused)}. "
            f"Take {them} out of 'policy_ids', or resume {them}.",
            param="policy_ids",
        )


class PolicyVersionNotFound(GatewayError):
    """The policy was never published under this number."""

    kind = Kind.NOT_FOUND
    code = "policy_version_not_found"

    def __init__(self) -> None:
        super().__init__(
            "The policy has no such version. "
            "`GET /manage/v1/organization/policies/{policy_id}/versions` lists them.",
            param="version",
        )


class TargetNotFound(GatewayError):
    """One of the projects is unknown, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(
            f"No project of this organization has {listed_ids(unknown)}. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_ids",
        )


class NoAnswerToEnd(InvalidRequest):
    """A policy that judges requests alone has no answer that it could end early."""

    def __init__(self, param: str) -> None:
        super().__init__(
            "invalid_parameter_combination",
            "Only a policy that judges answers can have 'ends_answer_early'.",
            param=param,
        )


class StaleRevision(GatewayError):
    """Somebody else changed the policy after the caller last read it."""

    kind = Kind.CONFLICT
    code = "revision_conflict"
    should_retry = False

    def __init__(self, *, sent: int, latest: int) -> None:
        super().__init__(
            f"Revision {sent} is not the latest, which is {latest}. Read the policy again.",
            param="revision",
        )


class RevisionsExhausted(GatewayError):
    """The policy was changed as often as revisions can be counted."""

    kind = Kind.CONFLICT
    code = "revision_conflict"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The policy can not be changed any more. Create a new one.", param="revision"
        )


class PolicyStateConflict(GatewayError):
    """The policy's state does not allow the change."""

    kind = Kind.CONFLICT
    code = "policy_state_conflict"
    should_retry = False

    def __init__(self, state: str) -> None:
        super().__init__(
            f"The policy's state is '{state}', which does not allow this change. Read the policy "
            "again.",
            param="policy_id",
        )


class VersionIsCurrent(GatewayError):
    """Rolling back to what already is in force would change nothing."""

    kind = Kind.CONFLICT
    code = "policy_state_conflict"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "This version is the current one already. Name an earlier version.", param="version"
        )


class SnapshotBehind(ServiceUnavailable):
    """The newest policies of the organization could not be read, and old ones are not used."""

    def __init__(self) -> None:
        super().__init__("The organization's policies could not be read. Try again shortly.")
