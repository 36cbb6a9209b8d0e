"""Errors of policy evaluation: those that callers receive, and failures of the judge."""

from collections.abc import Sequence
from typing import Final

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.base.ids import PolicyId, policy_id_text
from tollhouse.base.policies import DEMONSTRATION_KINDS, Direction, JudgedDirection
from tollhouse.evaluation.types import FailureReason, Score

_ADVICE = (
    "Change the request, or ask an administrator of the organization, who sees the policy's name."
)
_DENIED: dict[JudgedDirection, str] = {
    Direction.REQUEST: "The request was refused by policy {ids}. It costs nothing. " + _ADVICE,
    Direction.RESPONSE: (
        "The answer was withheld by policy {ids}. The model's work is charged. " + _ADVICE
    ),
}


FAILURES: Final = {
    FailureReason.UNREACHABLE: "the judge could not be reached, or failed; run `tollhouse doctor`",
    FailureReason.TIMED_OUT: "the judge took longer than its `deadline_seconds`",
    FailureReason.REJECTED: "the judge refused the question as invalid; run `tollhouse doctor`",
    FailureReason.GARBLED: "the judge's answer could not be parsed; run `tollhouse doctor`",
    FailureReason.UNSEEN: "neither yes nor no is among the tokens that the judge returned",
    FailureReason.UNCOVERED: "yes and no together are too improbable in the judge's answer",
    FailureReason.UNDECIDED: "the threshold lies between the bounds of the score, because the "
    "judge returned too few tokens",
    FailureReason.NOT_EVALUABLE: "the text cannot be rendered for a judge",
    FailureReason.OVER_BUDGET: "the rule or the text is longer than the judge's limits allow",
}
"""Why the judge has no verdict, in words for administrators."""
UNKNOWN_RULE: Final = (
    f"the demonstration judge of this trial knows only questions about {DEMONSTRATION_KINDS}; name "
    "another model in [judge] of tollhouse.toml to judge other rules"
)
NO_JUDGE: Final = "this gateway has no judge; let the operator configure one"


class JudgeFailed(Exception):
    """The judge gave no usable answer to a question. Callers receive another error for it.

    `score` is given if the judge answered and the threshold lies between the score's bounds.
    """

    def __init__(self, reason: FailureReason, score: Score | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.score = score


class AsymmetricTokenizer(Exception):
    """The engine has no spelling in which "yes" and "no" are one token each: it cannot judge."""


class PolicyViolation(GatewayError):
    """An enforcing policy matched. Callers get its ID; administrators also see its name."""

    kind = Kind.DENIED
    code = "policy_violation"
    is_policy_failure = True
    template = "{self.text}"

    def __init__(self, policy_ids: Sequence[PolicyId], direction: JudgedDirection) -> None:
        self.policy_ids = tuple(policy_ids)
        ids = ", ".join(map(policy_id_text, policy_ids))
        super().__init__(text=_DENIED[direction].format(ids=ids))


class PolicyEvaluatorUnavailable(GatewayError):
    """An enforcing policy applies and could not be evaluated. Nothing was let through."""

    kind = Kind.UNAVAILABLE
    code = "policy_evaluator_unavailable"
    is_policy_failure = True
    should_retry = False
    template = (
        "A policy applies to this request, and the judge that evaluates it is not available. "
        "Nothing is charged. Try again later."
    )


class UnknownToDemonstrationJudge(PolicyEvaluatorUnavailable):
    """An enforcing policy applies that the judge of a trial does not know."""

    template = (
        "A policy applies to this request whose rule the demonstration judge of this trial does "
        f"not know: it knows only questions about {DEMONSTRATION_KINDS}. Nothing is charged. Name "
        "another judge in [judge] of tollhouse.toml, such as the trial's small model or your own "
        "(/docs/guides/judging/), or pause the policy."
    )


class PolicyNotEvaluable(GatewayError):
    """No judge can evaluate the request as it is. Change it: a retry fails again."""

    kind = Kind.DENIED
    code = "policy_not_evaluable"
    is_policy_failure = True
    should_retry = False


class NotEvaluable(PolicyNotEvaluable):
    """A part of the content is not text, such as an image, sound or a file."""

    template = (
        "A policy applies to this request, and the judge reads only text. Leave out what is not "
        "text, such as images, sound and files. Nothing was forwarded or charged."
    )
    param: str | None


class TooLongToJudge(PolicyNotEvaluable):
    """The content is longer than the judge may read for one request."""

    template = (
        "A policy applies to this request, and its content is too long to be judged. Shorten it. "
        "Nothing was forwarded or charged."
    )


class PolicyNotJudged(GatewayError):
    """An enforcing policy was not published, because the judge cannot answer its question."""

    kind = Kind.CONFLICT
    code = "policy_not_judged"
    should_retry = False
    param = "refuses_until_judged"
    template = (
        "Nothing was published. The judge cannot answer the question of this policy: {self.why}. "
        "Every request that the policy applies to would be refused with 503. Publish it in the "
        "mode 'monitoring', or send 'refuses_until_judged': true (`--refuse-until-judged` in the "
        "command) to have them refused until the judge can."
    )
    why: str


class NoJudge(GatewayError):
    """No judge is configured for this gateway."""

    kind = Kind.UNAVAILABLE
    code = "no_judge"
    should_retry = False
    template = (
        "This gateway has no judge, so policies cannot be tested. Let the operator configure one "
        "(/docs/guides/judging/)."
    )


class TooManyTrials(GatewayError):
    """The organization runs the maximum number of policy tests at once in this worker."""

    kind = Kind.LIMITED
    code = "too_many_policy_tests"
    retry_after_seconds = 1
    template = (
        "The organization already runs {self.at_once_max} policy tests in this worker, which is "
        "its limit. Try again when one of them has ended."
    )
    at_once_max: int


class JudgeTokensExhausted(GatewayError):
    """The organization has used its judge tokens of this minute. The judge was not called."""

    kind = Kind.LIMITED
    code = "policy_rate_limit_exceeded"
    template = (
        "The organization's policies may use {self.tokens_per_minute} judge tokens per minute in "
        "each worker, and they are used up. Try again in {self.retry_after_seconds} s, or let the "
        "operator raise judge.organization_tokens_per_minute."
    )
    tokens_per_minute: int
    retry_after_seconds: int | None


class TooManyEvaluations(GatewayError):
    """The maximum number of policy evaluations of the organization is pending in this worker."""

    kind = Kind.LIMITED
    code = "policy_rate_limit_exceeded"
    retry_after_seconds = 1
    template = (
        "The organization already has {self.pending_max} policy evaluations pending in this "
        "worker. Try again shortly, or let the operator raise quotas.pending_evaluations."
    )
    pending_max: int


class RuleTooLong(GatewayError):
    """The rule alone is longer than the judge can read."""

    kind = Kind.CONFLICT
    code = "policy_budget_exceeded"
    should_retry = False
    param = "rule"
    template = (
        "The rule takes about {self.tokens} tokens; the judge reads at most {self.tokens_max}. "
        "Shorten it."
    )
    tokens: int
    tokens_max: int


class PolicySetTooLarge(GatewayError):
    """With this policy, judging one request of its scope would exceed the judge's budget."""

    kind = Kind.CONFLICT
    code = "policy_budget_exceeded"
    should_retry = False
    param = "policy_id"
    template = (
        "Judging one request would take about {self.tokens} tokens; at most {self.tokens_max} are "
        "allowed. Shorten rules, or pause policies of the same scope."
    )
    tokens: int
    tokens_max: int


class SelectionTooLarge(GatewayError):
    """The policies that the request adds by `policy_ids` exceed the judge's budget."""

    kind = Kind.INVALID
    code = "policy_budget_exceeded"
    param = "policy_ids"
    template = (
        "Judging this request would take more than the {self.tokens_max} tokens that are allowed. "
        "Select fewer policies, or send less."
    )
    tokens_max: int


class UnjudgedAnswer(GatewayError):
    """The answer was generated and is charged, and cannot be sent because it cannot be judged."""

    kind = Kind.UNAVAILABLE
    is_policy_failure = True
    should_retry = False


class AnswerTooLongToBuffer(UnjudgedAnswer):
    """A policy must judge the whole answer, and it is longer than the gateway may buffer."""

    code = "policy_answer_too_long"
    template = (
        "A policy applies, and the answer is too long to be buffered until it is judged. The "
        "model's work is charged. Lower the maximum number of output tokens."
    )


class OrganizationBufferExceeded(UnjudgedAnswer):
    """Answers of the organization that wait for a verdict fill its share of a worker's buffer."""

    code = "policy_buffer_exceeded"
    template = (
        "A policy applies, and the organization's answers that wait for a verdict fill its share "
        "of the buffer. The model's work is charged. Send fewer requests at once, or lower the "
        "maximum number of output tokens."
    )


class AnswerTooLongToJudge(UnjudgedAnswer):
    """Judging the whole answer would exceed the judge's budget. The model's work is charged."""

    code = AnswerTooLongToBuffer.code
    template = (
        "A policy applies, and the answer is too long to be judged. The model's work is charged. "
        "Lower the maximum number of output tokens."
    )


class AnswerNotEvaluable(PolicyEvaluatorUnavailable):
    """A part of the model's answer is not text. The caller did not write it and pays nothing."""

    template = (
        "A policy applies, and the model's answer has a part that is not text, which the judge "
        "cannot read. Nothing is charged. Ask for an answer in text alone."
    )


class AnswerBuffersFull(PolicyEvaluatorUnavailable):
    """Answers of all organizations that wait for a verdict fill the worker's buffer."""

    template = (
        "A policy applies, and the gateway's buffer for answers that wait for a verdict is full. "
        "Nothing is charged. Try again later."
    )


class OutputBufferExceeded(GatewayError):
    """The organization's unread answers fill its share of the worker's buffer."""

    kind = Kind.UNAVAILABLE
    code = "output_buffer_exceeded"
    should_retry = False
    template = (
        "Too many bytes of the organization's answers wait to be read. What was generated is "
        "charged. Read answers faster, or send fewer requests at once."
    )
