"""How a hold ends: the whole table of states, events and facts, against the rules in words."""

from itertools import product

import pytest

from tollhouse.inference.request_hold import (
    CallFacts,
    HoldEnding,
    HoldEvent,
    HoldState,
    ending_for,
    operator_rule,
)
from tollhouse.ledger.types import OperatorPays

FACTS = [
    CallFacts(
        bills_without_answer=bills,
        may_have_been_billed=billed,
        has_output=output,
        has_usage=usage,
        has_whole_answer=whole,
    )
    for bills, billed, output, usage, whole in product((False, True), repeat=5)
]
OPEN_STATES = [state for state in HoldState if state is not HoldState.RESOLVED]
ENDS_BILLING = (HoldEvent.COMPLETED, HoldEvent.CANCELLED)
CALLER_PAYS = (*ENDS_BILLING, HoldEvent.BROKEN_OFF)


def is_paid_by_operator(state: HoldState, event: HoldEvent, facts: CallFacts) -> bool:
    """State the rule independently of its table."""
    match event:
        case HoldEvent.EVALUATOR_FAILED | HoldEvent.ANSWER_DISCARDED:
            return True
        case HoldEvent.GATEWAY_STOPPING:
            return state is HoldState.BUFFERED
        case HoldEvent.BACKEND_FAILED:
            return state is HoldState.BUFFERED and not facts.bills_without_answer
        case _:
            return False


@pytest.mark.parametrize("event", HoldEvent)
def test_a_resolved_hold_never_ends_again(event: HoldEvent) -> None:
    assert {ending_for(HoldState.RESOLVED, event, facts) for facts in FACTS} == {HoldEnding.NONE}


def expected_ending(state: HoldState, event: HoldEvent, facts: CallFacts) -> HoldEnding:
    is_complete = event in ENDS_BILLING or facts.has_whole_answer
    if is_paid_by_operator(state, event, facts):
        is_used = facts.has_output or facts.has_usage
        return HoldEnding.OPERATOR_PAYS if is_used else HoldEnding.VOID
    if is_complete and facts.has_usage:
        return HoldEnding.CHARGE
    if facts.bills_without_answer and facts.may_have_been_billed:
        return HoldEnding.KEEP_UNSETTLED
    return HoldEnding.CHARGE if is_complete or facts.has_output else HoldEnding.VOID


@pytest.mark.parametrize("state", OPEN_STATES)
@pytest.mark.parametrize("event", HoldEvent)
def test_an_open_hold_ends(state: HoldState, event: HoldEvent) -> None:
    for facts in FACTS:
        assert ending_for(state, event, facts) is expected_ending(state, event, facts), facts


@pytest.mark.parametrize("state", OPEN_STATES)
@pytest.mark.parametrize("event", CALLER_PAYS)
def test_the_operator_pays_for_no_answer_that_was_delivered(
    state: HoldState, event: HoldEvent
) -> None:
    for bills in (False, True):
        assert operator_rule(state, event, bills_without_answer=bills) is None


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (HoldEvent.BACKEND_FAILED, OperatorPays.BACKEND_FAILED),
        (HoldEvent.GATEWAY_STOPPING, OperatorPays.GATEWAY_STOPPED),
        (HoldEvent.EVALUATOR_FAILED, OperatorPays.POLICY_EVALUATOR_FAILED),
        (HoldEvent.ANSWER_DISCARDED, OperatorPays.GATEWAY_STOPPED),
    ],
)
def test_each_rule_of_a_buffered_answer(event: HoldEvent, rule: OperatorPays) -> None:
    assert operator_rule(HoldState.BUFFERED, event, bills_without_answer=False) is rule
