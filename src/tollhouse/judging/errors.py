"""How judging fails: towards callers, and between the judge and whoever asks it."""

from collections.abc import Sequence

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.judging.types import FailureReason, JudgedDirection, Score
from tollhouse.policies.types import Direction

_ADVICE = (
    "Change the request, or ask an administrator of the organization, who sees the policy's name."
)
_DENIED: dict[JudgedDirection, str] = {
    Direction.REQUEST: "The request was refused by policy {ids}. It costs nothing. " + _ADVICE,
    Direction.RESPONSE: (
        "The answer was withheld by policy {ids}. The model's work is charged. " + _ADVICE
    ),
}


class JudgeFailed(Exception):
    """One question got no answer that can be used. Callers see it only as a refusal.

    There may be a score, on both sides of a threshold.
    """

    def __init__(self, reason: FailureReason, score: Score | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.score = score


class AsymmetricTokenizer(Exception):
    """The engine has no spelling in which both answers are single tokens: it cannot judge."""


class PolicyViolation(GatewayError):
    """An enforcing policy matched. Callers get its ID; administrators also see its name."""

    kind = Kind.DENIED
    code = "policy_violation"
    is_policy_failure = True

    def __init__(self, policy_ids: Sequence[PolicyId], direction: JudgedDirection) -> None:
        ids = ", ".join(map(policy_id_text, policy_ids))
        super().__init__(_DENIED[direction].format(ids=ids))
        self.policy_ids = tuple(policy_ids)


class PolicyEvaluatorUnavailable(GatewayError):
    """A policy applies and could not be evaluated, so that nothing was let through."""

    kind = Kind.UNAVAILABLE
    code = "policy_evaluator_unavailable"
    is_policy_failure = True
    should_retry = False

    def __init__(
        self,
        message: str = "A policy applies to this request and cannot be evaluated now.",
        *,
        param: str | None = None,
    ) -> None:
        super().__init__(message, param=param)


class PolicyNotEvaluable(GatewayError):
    """No judge can evaluate the request as it is. Change it: a retry fails again."""

    kind = Kind.DENIED
    code = "policy_not_evaluable"
    is_policy_failure = True
    should_retry = False


class NotEvaluable(PolicyNotEvaluable):
    """Something in the content cannot be shown to the judge, such as an image, sound or a file."""

    def __init__(self, param: str | None) -> None:
        super().__init__(
            "A policy applies to this request, and a judge reads only text. Leave out what is not "
            "text, such as images, sound and files. Nothing was forwarded or charged.",
            param=param,
        )


class TooLongToJudge(PolicyNotEvaluable):
    """The content is longer than the judge may read for one request."""

    def __init__(self) -> None:
        super().__init__(
            "A policy applies to this request, and its content is too long to be judged. Shorten "
            "it. Nothing was forwarded or charged."
        )


class NoJudge(GatewayError):
    """No judge is configured for this gateway."""

    kind = Kind.UNAVAILABLE
    code = "no_judge"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "No judge is configured, so that nothing can be asked. See docs/guides/judging.md."
        )


class TooManyTrials(GatewayError):
    """The organization runs as many policy tests at once in this worker as it may."""

    kind = Kind.LIMITED
    code = "too_many_policy_tests"

    def __init__(self, at_once_max: int) -> None:
        super().__init__(
            f"The organization's limit of {at_once_max} tests at once is reached."
            " Try again when one of them has ended."
        )
        self.retry_after_seconds = 1


class JudgeTokensExhausted(GatewayError):
    """The organization has used its judge tokens of this minute, so that no judge was asked."""

    kind = Kind.LIMITED
    code = "policy_rate_limit_exceeded"

    def __init__(self, tokens_per_minute: int, *, retry_after_seconds: int) -> None:
        super().__init__(
            f"The organization's policies may use {tokens_per_minute} judge tokens per minute in"
            f" each worker, and they are used up. Try again in {retry_after_seconds} s, or let the"
            " operator raise judge.organization_tokens_per_minute."
        )
        self.retry_after_seconds = retry_after_seconds


class TooManyEvaluations(GatewayError):
    """Too many requests of the organization wait for their policies in this worker."""

    kind = Kind.LIMITED
    code = "policy_rate_limit_exceeded"
    retry_after_seconds = 1

    def __init__(self, pending_max: int) -> None:
        super().__init__(
            f"The organization already has {pending_max} policy evaluations pending in this worker."
            " Try again shortly, or let the operator raise quotas.pending_evaluations."
        )


class RuleTooLong(GatewayError):
    """The rule alone is longer than the judge can read."""

    kind = Kind.CONFLICT
    code = "policy_budget_exceeded"
    should_retry = False

    def __init__(self, *, tokens: int, tokens_max: int) -> None:
        super().__init__(
            f"The rule takes about {tokens} tokens; the judge reads at most {tokens_max}. "
            "Shorten it.",
            param="rule",
        )


class PolicySetTooLarge(GatewayError):
    """With this policy, judging one request of its scope would exceed the judge's budget."""

    kind = Kind.CONFLICT
    code = "policy_budget_exceeded"
    should_retry = False

    def __init__(self, *, tokens: int, tokens_max: int) -> None:
        super().__init__(
            f"Judging one request would take about {tokens} tokens; at most {tokens_max} are "
            "allowed. Shorten rules, or pause policies of the same scope.",
            param="policy_id",
        )


class SelectionTooLarge(GatewayError):
    """What the request adds by `policy_ids` does not fit into the judge's budget."""

    kind = Kind.INVALID
    code = "policy_budget_exceeded"

    def __init__(self, *, tokens_max: int) -> None:
        super().__init__(
            f"Judging this request would take more than the {tokens_max} tokens that are allowed. "
            "Select fewer policies, or send less.",
            param="policy_ids",
        )
