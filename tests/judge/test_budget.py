"""What judging may take is known before a judge is asked."""

from dataclasses import replace

import pytest

from tests.judge.cases import PROFILE, policy, saying
from tollhouse.base.policies import Direction, Mode
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.errors import (
    PolicySetTooLarge,
    RuleTooLong,
    SelectionTooLarge,
    TooLongToJudge,
)
from tollhouse.evaluation.judge import prompts
from tollhouse.evaluation.token_budget import TokenBudget
from tollhouse.evaluation.types import JudgeProfile, PromptOrder
from tollhouse.policies.types import AppliedPolicy

RULE = "a" * 298  # 100 tokens with its quotation marks
WINDOW_TOKENS = prompts.window_bytes(PROFILE) // 3
QUESTION_FIRST = replace(PROFILE, order=PromptOrder.QUESTION_FIRST)


def budget(tokens_max: int = 0, *, profile: JudgeProfile = PROFILE) -> TokenBudget:
    return TokenBudget(profile, request_tokens_max=tokens_max)


def rules(count: int, direction: Direction = Direction.REQUEST) -> list[AppliedPolicy]:
    return [policy(RULE, direction=direction) for _ in range(count)]


def test_content_that_comes_first_is_read_once() -> None:
    rendered = RenderedContent(saying("b" * 3_000))
    content = budget().content_tokens(rendered, rules(1)) - 140

    assert budget().content_tokens(rendered, rules(1_000)) == content + 1_000 * 140


def test_content_that_comes_last_is_read_for_every_question() -> None:
    rendered = RenderedContent(saying("b" * 3_000))
    one = budget(profile=QUESTION_FIRST).content_tokens(rendered, rules(1))

    assert budget(profile=QUESTION_FIRST).content_tokens(rendered, rules(1_000)) == 1_000 * one


def test_every_window_is_asked_every_question() -> None:
    rendered = RenderedContent(saying("b" * 200_000))
    windows = len(rendered.windows(bytes_max=prompts.window_bytes(PROFILE)))

    one, two = (budget().content_tokens(rendered, rules(count)) for count in (1, 2))

    assert windows > 1
    assert two - one >= windows * 140


def test_no_policy_takes_nothing() -> None:
    assert budget().content_tokens(RenderedContent(saying("b" * 200_000)), []) == 0


def test_a_rule_must_leave_room_for_content() -> None:
    fits = "a" * (PROFILE.question_tokens_max * 3 - 2)

    budget().check_rule(fits)

    with pytest.raises(RuleTooLong) as failure:
        budget().check_rule(fits + "a")
    assert failure.value.kind == 409
    assert failure.value.param == "rule"


@pytest.mark.parametrize(
    ("direction", "directions"),
    [(Direction.REQUEST, 1), (Direction.RESPONSE, 1), (Direction.BOTH, 2)],
)
def test_a_set_must_leave_room_for_a_window_in_each_direction(
    direction: Direction, directions: int
) -> None:
    policies = rules(100, direction)
    needed = directions * (WINDOW_TOKENS + 100 * 140)

    budget(needed).check_set(policies)

    with pytest.raises(PolicySetTooLarge) as failure:
        budget(needed - 1).check_set(policies)
    assert failure.value.kind == 409
    assert str(needed) in failure.value.message


def test_a_selection_that_is_too_much_is_the_callers_to_shrink() -> None:
    rendered, applied, selected = RenderedContent(saying("b" * 3_000)), rules(10), rules(10)
    needed = budget().content_tokens(rendered, applied + selected)

    budget(needed).check_selection(rendered, applied, selected)

    with pytest.raises(SelectionTooLarge) as failure:
        budget(needed - 1).check_selection(rendered, applied, selected)
    assert failure.value.kind == 400
    assert failure.value.param == "policy_ids"


def test_an_answer_that_is_not_there_yet_counts_as_one_window() -> None:
    rendered, selected = RenderedContent(saying("b")), rules(10, Direction.RESPONSE)
    needed = WINDOW_TOKENS + 10 * 140

    budget(needed).check_selection(rendered, [], selected)

    with pytest.raises(SelectionTooLarge):
        budget(needed - 1).check_selection(rendered, [], selected)


def test_a_selection_is_not_to_blame_for_what_is_too_much_without_it() -> None:
    rendered = RenderedContent(saying("b" * 300_000))

    budget(1_000).check_selection(rendered, rules(1), rules(1))


def test_modes_are_counted_apart() -> None:
    monitored = [replace(each, mode=Mode.MONITORING) for each in rules(10)]
    rendered, enforced = RenderedContent(saying("b" * 3_000)), rules(10)
    needed = budget().content_tokens(rendered, enforced)

    budget(needed).check_selection(rendered, monitored, enforced)
    with pytest.raises(SelectionTooLarge):
        # The monitored policies exceed the budget too, which is no excuse for the others.
        budget(needed).check_selection(rendered, monitored * 2, [*enforced, *rules(1)])


def test_content_that_is_too_long_fails_closed() -> None:
    rendered = RenderedContent(saying("b" * 300_000))

    with pytest.raises(TooLongToJudge) as failure:
        budget(1_000).check_content(rendered, rules(1))

    assert (failure.value.kind, failure.value.code) == (403, "policy_not_evaluable")
    assert failure.value.is_policy_failure
    assert failure.value.should_retry is False
