"""One question over the wire: what is sent, what is read from the answer, and how it fails."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.judge.cases import PROFILE, question_of, saying
from tests.support.judge import P_YES, Fault, ScriptedJudge
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.score import score_answer
from tollhouse.evaluation.judge.yes_no_tokens import COMMON
from tollhouse.evaluation.types import FailureReason, LogprobSource, PromptOrder, Score

QUESTION = question_of('Does it say "bread"?', saying("Bake bread"))

Engines = Callable[..., JudgeClient]


async def asked(judge: JudgeClient) -> Score:
    return score_answer(await judge.ask(QUESTION), coverage_floor_basis_points=5_000)


@pytest.mark.parametrize("reading", LogprobSource)
@pytest.mark.parametrize("order", PromptOrder)
async def test_a_score_comes_over_the_wire(
    engine: Engines, reading: LogprobSource, order: PromptOrder
) -> None:
    found = await asked(engine(reading=reading, order=order))

    assert abs(found.basis_points - 10_000 * P_YES) <= 1
    assert found.coverage_basis_points == 9_800


async def test_one_token_is_asked_for_with_the_most_likely_ones(
    engine: Engines, judge: ScriptedJudge
) -> None:
    await asked(engine())

    body = judge.received[0].body
    assert [message["role"] for message in body.pop("messages")] == ["system", "user"]
    assert body == {
        "model": "judge",
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }


async def test_an_engine_that_can_is_asked_for_exactly_the_answers(
    engine: Engines, judge: ScriptedJudge
) -> None:
    found = await asked(engine(reading=LogprobSource.TOKEN_IDS, takes_cache_salt=True))

    body = judge.received[0].body
    assert sorted(body["logprob_token_ids"]) == [11, 12, 13, 14, 15, 16]
    assert body["return_tokens_as_token_ids"] is True
    assert body["cache_salt"] == QUESTION.request_keys.cache_salt
    assert "top_logprobs" not in body
    assert found.lowest_basis_points == found.highest_basis_points


async def test_a_list_leaves_bounds_where_spellings_are_missing(engine: Engines) -> None:
    found = await asked(engine())

    assert found.lowest_basis_points < found.basis_points < found.highest_basis_points


REASONS = {
    Fault.ERROR_500: FailureReason.UNREACHABLE,
    Fault.BUSY_429: FailureReason.UNREACHABLE,
    Fault.REFUSES_400: FailureReason.REJECTED,
    Fault.HANGS_UP: FailureReason.UNREACHABLE,
    Fault.CUT_OFF: FailureReason.UNREACHABLE,
    Fault.ERROR_IN_200: FailureReason.UNREACHABLE,
    Fault.NO_CHOICES: FailureReason.UNREACHABLE,
    Fault.NOT_JSON: FailureReason.UNREACHABLE,
    Fault.NAN: FailureReason.UNREACHABLE,
    Fault.NO_LOGPROBS: FailureReason.GARBLED,
    Fault.EMPTY_LOGPROBS: FailureReason.UNSEEN,
    Fault.NULL_LOGPROB: FailureReason.GARBLED,
    Fault.ABOVE_ONE: FailureReason.GARBLED,
    Fault.NEITHER_SIDE: FailureReason.UNSEEN,
    Fault.LOW_COVERAGE: FailureReason.UNCOVERED,
}


@pytest.mark.parametrize(("fault", "reason"), REASONS.items(), ids=lambda each: each.name)
async def test_every_fault_is_a_failure_with_its_reason(
    engine: Engines, judge: ScriptedJudge, fault: Fault, reason: FailureReason
) -> None:
    judge.fails = lambda _: fault

    with pytest.raises(JudgeFailed) as failure:
        await asked(engine())

    assert failure.value.reason is reason


def test_the_table_has_every_fault_but_those_of_time_and_threshold() -> None:
    assert set(Fault) - REASONS.keys() == {Fault.STALLS, Fault.UNDECIDED}


def test_a_judge_is_another_one_when_anything_about_it_changes(engine: Engines) -> None:
    identities = {
        engine().identity,
        engine(model="other").identity,
        engine(order=PromptOrder.QUESTION_FIRST).identity,
        engine(reading=LogprobSource.TOKEN_IDS).identity,
    }

    assert len(identities) == 4
    assert engine().identity == engine().identity


def test_exact_reading_needs_the_tokens_numbers(backend: OpenAiBackend) -> None:
    with pytest.raises(AssertionError):
        JudgeClient(
            backend, replace(PROFILE, reading=LogprobSource.TOKEN_IDS), COMMON, backend="judge"
        )
