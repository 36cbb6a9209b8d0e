"""The judge's token budget of one request, estimated before the judge is called.

An estimate assumes that the judge reads the content once if it comes first in the prompt, and
once per question if it comes last.
"""

from collections.abc import Iterable, Sequence

from tollhouse.base.policies import JUDGED_DIRECTIONS, Direction, JudgedDirection, Mode
from tollhouse.evaluation.content import escapes
from tollhouse.evaluation.content.windows import OVERLAP_SHARE, RenderedContent
from tollhouse.evaluation.errors import (
    PolicySetTooLarge,
    RuleTooLong,
    SelectionTooLarge,
    TooLongToJudge,
)
from tollhouse.evaluation.judge import prompts
from tollhouse.evaluation.types import JudgeProfile, PromptOrder
from tollhouse.policies.types import AppliedPolicy

ANSWER_TOKENS = 40
"""The tokens of a prompt after the content, without the question."""


def applying(
    policies: Iterable[AppliedPolicy], direction: JudgedDirection
) -> tuple[AppliedPolicy, ...]:
    """Return the policies that are evaluated in this direction."""
    return tuple(each for each in policies if each.direction in {direction, Direction.BOTH})


class TokenBudget:
    """Estimates the tokens that a judge takes, and refuses more than a request may take."""

    def __init__(self, profile: JudgeProfile, *, request_tokens_max: int) -> None:
        self._profile = profile
        self.request_tokens_max = request_tokens_max

    def check_rule(self, rule: str) -> None:
        """Raise `RuleTooLong` if the rule does not fit the judge's context."""
        tokens = prompts.question_tokens(rule, self._profile)
        if tokens > self._profile.question_tokens_max:
            raise RuleTooLong(tokens=tokens, tokens_max=self._profile.question_tokens_max)

    def check_set(self, policies: Sequence[AppliedPolicy]) -> None:
        """Raise `PolicySetTooLarge` if one window in each judged direction exceeds the budget.

        Modes are counted separately, because they are evaluated separately.
        """
        for mode in Mode:
            counted = _with_mode(policies, mode)
            tokens = sum(self._window_tokens(counted, each) for each in JUDGED_DIRECTIONS)
            if tokens > self.request_tokens_max:
                raise PolicySetTooLarge(tokens=tokens, tokens_max=self.request_tokens_max)

    def check_selection(
        self,
        rendered: RenderedContent | None,
        by_scope: Sequence[AppliedPolicy],
        selected: Sequence[AppliedPolicy],
    ) -> None:
        """Raise `SelectionTooLarge` if the budget is exceeded only with the selected policies.

        `rendered` is None if no policy evaluates the request. The answer does not exist yet and
        counts as one window.
        """
        for mode in Mode:
            without = _with_mode(by_scope, mode)
            tokens = self._both_tokens(rendered, (*without, *_with_mode(selected, mode)))
            is_exceeded_without = self._both_tokens(rendered, without) > self.request_tokens_max
            if tokens > self.request_tokens_max and not is_exceeded_without:
                raise SelectionTooLarge(tokens_max=self.request_tokens_max)

    def check_content(
        self, rendered: RenderedContent, policies: Sequence[AppliedPolicy], *, spent_tokens: int = 0
    ) -> int:
        """Return the tokens of a content, or raise `TooLongToJudge` if too few are left.

        `spent_tokens` are those that the request has already taken.
        """
        tokens = self.content_tokens(rendered, policies)
        if tokens > self.request_tokens_max - spent_tokens:
            raise TooLongToJudge
        return tokens

    def content_tokens(self, rendered: RenderedContent, policies: Sequence[AppliedPolicy]) -> int:
        """Return the tokens that these policies take on a content, without any bound."""
        return self.sized_tokens(escapes.size_bytes(rendered.text), policies)

    def sized_tokens(self, size_bytes: int, policies: Sequence[AppliedPolicy]) -> int:
        """Return the tokens that these policies take on a content that is not rendered yet."""
        window_bytes = prompts.window_bytes(self._profile)
        windows = 1
        if size_bytes > window_bytes:
            windows = -(-size_bytes * OVERLAP_SHARE // (window_bytes * (OVERLAP_SHARE - 1)))
            size_bytes = windows * window_bytes
        return self._tokens(-(-size_bytes // self._profile.bytes_per_token), windows, policies)

    def _both_tokens(
        self, rendered: RenderedContent | None, policies: Sequence[AppliedPolicy]
    ) -> int:
        answer_tokens = self._window_tokens(policies, Direction.RESPONSE)
        if rendered is None:
            return answer_tokens
        request_policies = applying(policies, Direction.REQUEST)
        return self.content_tokens(rendered, request_policies) + answer_tokens

    def _window_tokens(self, policies: Sequence[AppliedPolicy], direction: JudgedDirection) -> int:
        window_tokens = prompts.window_bytes(self._profile) // self._profile.bytes_per_token
        return self._tokens(window_tokens, 1, applying(policies, direction))

    def _tokens(self, content_tokens: int, windows: int, policies: Sequence[AppliedPolicy]) -> int:
        if not policies:
            return 0
        profile = self._profile
        questions = sum(prompts.question_tokens(policy.rule, profile) for policy in policies)
        readings = len(policies) if profile.order is PromptOrder.QUESTION_FIRST else 1
        return readings * content_tokens + windows * (questions + ANSWER_TOKENS * len(policies))


def _with_mode(policies: Iterable[AppliedPolicy], mode: Mode) -> tuple[AppliedPolicy, ...]:
    return tuple(each for each in policies if each.mode is mode)
