"""What is charged for every form of report, by how the answer ended."""

from typing import Any

import msgspec
import pytest

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.inference.messages.endpoint import usage_of
from tollhouse.inference.meter import Meter
from tollhouse.ledger.pricing import TokenBound

PROMPT_CHARACTERS = 38
ESTIMATED_PROMPT = 10
BOUND = TokenBound(prompt_tokens=60, images=0, output_tokens=50, completions=1)
TEXT = {"choices": [{"delta": {"content": "x" * 80}}]}
"""Counts 20 tokens."""


def report(**usage: object) -> dict[str, Any]:
    return {"choices": [], "usage": usage}


def ended_by(
    *records: dict[str, Any], is_complete: bool, has_continuous_usage: bool = False
) -> tuple[int, int, bool]:
    """Prompt and output tokens that are charged, and whether they are an estimate."""
    meter = Meter(
        prompt_characters=PROMPT_CHARACTERS, bound=BOUND, has_continuous_usage=has_continuous_usage
    )
    meter.see([msgspec.convert(record, UpstreamChunk) for record in records])
    metered = meter.usage(is_complete=is_complete)
    usage = metered.usage
    return usage.prompt_tokens, usage.completion_tokens, metered.is_estimated


COUNTED = (ESTIMATED_PROMPT, 20, True)
MISSING = (TEXT,)
PARTIAL = (TEXT, report(prompt_tokens=7))
EARLY = (report(prompt_tokens=7, completion_tokens=0), TEXT)
MIDWAY = (TEXT, report(prompt_tokens=7, completion_tokens=21), TEXT)
FINAL = (TEXT, report(prompt_tokens=7, completion_tokens=30))
BELOW = (TEXT, report(prompt_tokens=7, completion_tokens=12))
ABOVE = (TEXT, report(prompt_tokens=70, completion_tokens=90))
ZERO = (TEXT, report(prompt_tokens=0, completion_tokens=0))
LOGPROBS = {"choices": [{"delta": {}, "logprobs": {"content": [{"token": "x"}] * 30}}]}
"""Counts 30 tokens, more than its text."""
WITH_CHOICE = ({**TEXT, "usage": {"prompt_tokens": 7, "completion_tokens": 12}},)


@pytest.mark.parametrize(
    ("records", "complete", "broken_off"),
    [
        pytest.param(MISSING, COUNTED, COUNTED, id="missing"),
        pytest.param(PARTIAL, (7, 20, True), (7, 20, True), id="partial"),
        pytest.param(EARLY, (7, 20, True), (7, 20, True), id="early zero"),
        pytest.param(MIDWAY, (7, 40, True), (7, 40, True), id="midway"),
        pytest.param(FINAL, (7, 30, False), (7, 30, False), id="final"),
        pytest.param(BELOW, (7, 12, False), (7, 20, True), id="below the count"),
        pytest.param(ABOVE, (60, 50, False), (60, 50, False), id="above the bound"),
        pytest.param(ZERO, COUNTED, COUNTED, id="zero for text"),
        pytest.param(WITH_CHOICE, (7, 12, False), (7, 20, True), id="with the choice"),
    ],
)
def test_each_form_of_report_is_charged_by_how_the_answer_ended(
    records: tuple[dict[str, Any], ...],
    complete: tuple[int, int, bool],
    broken_off: tuple[int, int, bool],
) -> None:
    assert ended_by(*records, is_complete=True) == complete
    # A caller who leaves and a backend that fails are alike here: the report is not the last word.
    assert ended_by(*records, is_complete=False) == broken_off


@pytest.mark.parametrize(
    ("records", "broken_off"),
    [
        pytest.param(MISSING, COUNTED, id="missing"),
        pytest.param(EARLY, (7, 20, True), id="early zero"),
        pytest.param(MIDWAY, (7, 40, True), id="midway"),
        pytest.param(ZERO, COUNTED, id="zero for text"),
        pytest.param(BELOW, (7, 12, False), id="below the count"),
        pytest.param(WITH_CHOICE, (7, 12, False), id="with the choice"),
        pytest.param((*WITH_CHOICE, TEXT), (7, 40, True), id="text after it"),
        pytest.param((*WITH_CHOICE, LOGPROBS), (7, 30, True), id="log probabilities after it"),
    ],
)
def test_an_engine_that_reports_with_all_text_is_believed_also_midway(
    records: tuple[dict[str, Any], ...], broken_off: tuple[int, int, bool]
) -> None:
    assert ended_by(*records, is_complete=False, has_continuous_usage=True) == broken_off


def test_what_is_reported_above_the_bound_is_kept_beside_the_charge() -> None:
    meter = Meter(prompt_characters=PROMPT_CHARACTERS, bound=BOUND)
    meter.see([msgspec.convert(record, UpstreamChunk) for record in ABOVE])

    metered = meter.usage(is_complete=True)

    assert (metered.used.prompt_tokens, metered.used.completion_tokens) == (70, 90)
    assert (metered.usage.prompt_tokens, metered.usage.completion_tokens) == (60, 50)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(None, COUNTED, id="missing"),
        pytest.param({"prompt_tokens": 7}, (7, 20, True), id="partial"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 12}, (7, 12, False), id="below"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 90}, (7, 50, False), id="above"),
        pytest.param({"prompt_tokens": 7, "completion_tokens": 0}, (7, 20, True), id="zero"),
    ],
)
def test_a_whole_answer_is_charged_as_a_complete_stream_is(
    usage: dict[str, int] | None, expected: tuple[int, int, bool]
) -> None:
    meter = Meter(prompt_characters=PROMPT_CHARACTERS, bound=BOUND)
    body = {"choices": [{"message": {"content": "x" * 80}}], "usage": usage}
    meter.see_completion(msgspec.convert(body, UpstreamCompletion))

    metered = meter.usage(is_complete=True)

    charged = metered.usage
    assert (charged.prompt_tokens, charged.completion_tokens, metered.is_estimated) == expected


def test_an_empty_answer_without_usage_costs_no_output() -> None:
    assert ended_by({"choices": [{"delta": {}, "finish_reason": "stop"}]}, is_complete=True) == (
        ESTIMATED_PROMPT,
        0,
        True,
    )


def test_an_estimated_prompt_never_exceeds_what_was_held_for_it() -> None:
    meter = Meter(prompt_characters=10_000, bound=BOUND)

    assert meter.usage(is_complete=True).usage.prompt_tokens == BOUND.prompt_tokens


def test_one_choice_without_a_report_makes_the_others_no_final_word() -> None:
    bound = TokenBound(prompt_tokens=60, images=0, output_tokens=50, completions=2)
    meter = Meter(prompt_characters=PROMPT_CHARACTERS, bound=bound)
    usage = {"prompt_tokens": 7, "completion_tokens": 12}
    reported = {"choices": [{"index": 0, "delta": {"content": "x" * 80}}], "usage": usage}
    unreported = {"choices": [{"index": 1, "delta": {"content": "x" * 80}}]}
    meter.see([msgspec.convert(record, UpstreamChunk) for record in (reported, unreported)])

    assert meter.usage(is_complete=True).usage.completion_tokens == 40


def test_a_report_without_output_replaces_none_that_has_it() -> None:
    last = report(prompt_tokens=9)
    records = (TEXT, report(prompt_tokens=7, completion_tokens=30), last)

    assert ended_by(*records, is_complete=True) == (7, 30, False)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param((100, 90, 10), (60, 60, 0), id="above the bound"),
        pytest.param((100, 10, 80), (60, 10, 50), id="written above the bound"),
        pytest.param((7, 9, 9), (7, 7, 0), id="more cached than there is"),
        pytest.param((7, 4, 9), (7, 4, 3), id="more written than there is"),
        pytest.param((0, 40, 0), (ESTIMATED_PROMPT, ESTIMATED_PROMPT, 0), id="an estimated prompt"),
    ],
)
def test_what_a_cache_has_is_never_more_than_the_prompt(
    reported: tuple[int, int, int], expected: tuple[int, int, int]
) -> None:
    prompt, cached, written = reported
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    meter = Meter(prompt_characters=PROMPT_CHARACTERS, bound=BOUND)
    record = report(prompt_tokens=prompt, completion_tokens=1, prompt_tokens_details=details)
    meter.see([msgspec.convert(record, UpstreamChunk)])

    usage = meter.usage(is_complete=True).usage

    assert (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens) == expected
    assert usage_of(usage).input_tokens >= 0
