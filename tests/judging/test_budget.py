"""What judging may take is known before a judge is asked."""

from dataclasses import replace

import pytest

from tests.judging.cases import PROFILE, policy, saying
from tollhouse.judging import budget, layout
from tollhouse.judging.errors import (
    PolicySetTooLarge,
    RuleTooLong,
    SelectionTooLarge,
    TooLongToJudge,
)
from tollhouse.judging.types import Order
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import AppliedPolicy, Direction, Mode

RULE = "a" * 298  # 100 tokens with its quotation marks
WINDOW_TOKENS = layout.window_bytes(PROFILE) // 3
QUESTION_FIRST = replace(PROFILE, order=Order.QUESTION_FIRST)


def rules(count: int, direction: Direction = Direction.REQUEST) -> list[AppliedPolicy]:
    return [policy(RULE, direction=direction) for _ in range(count)]


def test_content_that_comes_first_is_read_once() -> None:
    sheet = Sheet(saying("b" * 3_000))
    content = budget.content_tokens(sheet, rules(1), PROFILE) - 140

    assert budget.content_tokens(sheet, rules(1_000), PROFILE) == content + 1_000 * 140


def test_content_that_comes_last_is_read_for_every_question() -> None:
    sheet = Sheet(saying("b" * 3_000))
    one = budget.content_tokens(sheet, rules(1), QUESTION_FIRST)

    assert budget.content_tokens(sheet, rules(1_000), QUESTION_FIRST) == 1_000 * one


def test_every_window_is_asked_every_question() -> None:
    sheet = Sheet(saying("b" * 200_000))
    windows = len(sheet.windows(bytes_max=layout.window_bytes(PROFILE)))

    one, two = (budget.content_tokens(sheet, rules(count), PROFILE) for count in (1, 2))

    assert windows > 1
    assert two - one >= windows * 140


def test_no_policy_takes_nothing() -> None:
    assert budget.content_tokens(Sheet(saying("b" * 200_000)), [], PROFILE) == 0


def test_a_rule_must_leave_room_for_content() -> None:
    fits = "a" * (PROFILE.question_tokens_max * 3 - 2)

    budget.check_rule(fits, PROFILE)

    with pytest.raises(RuleTooLong) as failure:
        budget.check_rule(fits + "a", PROFILE)
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

    budget.check_set(policies, PROFILE, tokens_max=needed)

    with pytest.raises(PolicySetTooLarge) as failure:
        budget.check_set(policies, PROFILE, tokens_max=needed - 1)
    assert failure.value.kind == 409
    assert str(needed) in failure.value.message


def test_a_selection_that_is_too_much_is_the_callers_to_shrink() -> None:
    sheet, applied, selected = Sheet(saying("b" * 3_000)), rules(10), rules(10)
    needed = budget.content_tokens(sheet, applied + selected, PROFILE)

    budget.check_selection(sheet, applied, selected, PROFILE, tokens_max=needed)

    with pytest.raises(SelectionTooLarge) as failure:
        budget.check_selection(sheet, applied, selected, PROFILE, tokens_max=needed - 1)
    assert failure.value.kind == 400
    assert failure.value.param == "policy_ids"


def test_an_answer_that_is_not_there_yet_counts_as_one_window() -> None:
    sheet, selected = Sheet(saying("b")), rules(10, Direction.RESPONSE)
    needed = WINDOW_TOKENS + 10 * 140

    budget.check_selection(sheet, [], selected, PROFILE, tokens_max=needed)

    with pytest.raises(SelectionTooLarge):
        budget.check_selection(sheet, [], selected, PROFILE, tokens_max=needed - 1)


def test_a_selection_is_not_to_blame_for_what_is_too_much_without_it() -> None:
    sheet = Sheet(saying("b" * 300_000))

    budget.check_selection(sheet, rules(1), rules(1), PROFILE, tokens_max=1_000)


def test_modes_are_counted_apart() -> None:
    watched = [replace(each, mode=Mode.MONITORING) for each in rules(10)]
    sheet, enforced = Sheet(saying("b" * 3_000)), rules(10)
    needed = budget.content_tokens(sheet, enforced, PROFILE)

    budget.check_selection(sheet, watched, enforced, PROFILE, tokens_max=needed)
    with pytest.raises(SelectionTooLarge):
        # What is only watched is too much already, and nobody's excuse.
        budget.check_selection(
            sheet, watched * 2, [*enforced, *rules(1)], PROFILE, tokens_max=needed
        )


def test_content_that_is_too_long_fails_closed() -> None:
    sheet = Sheet(saying("b" * 300_000))

    with pytest.raises(TooLongToJudge) as failure:
        budget.check_content(sheet, rules(1), PROFILE, tokens_max=1_000)

    assert (failure.value.kind, failure.value.code) == (403, "policy_not_evaluable")
    assert failure.value.is_policy_failure
    assert failure.value.should_retry is False
