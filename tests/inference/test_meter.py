"""Unknown usage is a state, not a zero."""

from typing import Any

import msgspec
import pytest

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.inference.meter import Meter
from tollhouse.ledger.pricing import TokenBound

BOUND = TokenBound(prompt_tokens=1_000, images=1, output_tokens=500, completions=2)


def meter() -> Meter:
    return Meter(prompt_characters=40, bound=BOUND)


def chunk(**fields: object) -> UpstreamChunk:
    return msgspec.convert(fields, UpstreamChunk)


def said(text: str) -> UpstreamChunk:
    return chunk(choices=[{"delta": {"content": text}}])


def test_nothing_seen_is_no_output_and_no_usage() -> None:
    seen = meter()

    assert not seen.has_output
    assert not seen.has_usage


def test_a_role_alone_is_no_output() -> None:
    seen = meter()
    seen.see([chunk(choices=[{"delta": {"role": "assistant", "content": ""}}])])

    assert not seen.has_output


def test_reported_usage_is_believed_and_the_last_report_counts() -> None:
    seen = meter()
    seen.see([said("a"), chunk(usage={"prompt_tokens": 7, "completion_tokens": 1})])
    seen.see(
        [
            chunk(
                usage={
                    "prompt_tokens": 7,
                    "completion_tokens": 9,
                    "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                }
            )
        ]
    )

    usage = seen.usage(is_complete=True).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 9)
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.images) == (4, 2, 1)


def test_a_report_of_the_prompt_alone_is_no_usage() -> None:
    total, by_choice = meter(), meter()
    total.see([said("x"), chunk(usage={"prompt_tokens": 7})])
    by_choice.see([chunk(choices=[{"delta": {"content": "x"}}], usage={"prompt_tokens": 7})])

    for seen in (total, by_choice):
        assert seen.has_report
        assert not seen.has_usage
        assert seen.usage(is_complete=False).usage.prompt_tokens == 7
    usage = {"prompt_tokens": 7, "completion_tokens": 1}
    by_choice.see([chunk(choices=[{"index": 0}], usage=usage)])
    assert by_choice.has_usage


def test_reports_of_single_choices_are_added_until_the_total_comes() -> None:
    seen = meter()
    for index, tokens in ((0, 1), (1, 1), (0, 2), (1, 5)):
        usage = {"prompt_tokens": 7, "completion_tokens": tokens}
        seen.see([chunk(choices=[{"index": index, "delta": {"content": "x"}}], usage=usage)])
    so_far = seen.usage(is_complete=True).usage
    seen.see([chunk(usage={"prompt_tokens": 7, "completion_tokens": 8})])

    assert (so_far.prompt_tokens, so_far.completion_tokens) == (7, 7)
    assert seen.usage(is_complete=True).usage.completion_tokens == 8


def test_a_report_of_one_choice_after_that_of_all_leaves_the_others_counted() -> None:
    seen = meter()
    seen.see([said("x" * 40), chunk(usage={"prompt_tokens": 7, "completion_tokens": 10})])
    usage = {"prompt_tokens": 7, "completion_tokens": 10}
    seen.see([chunk(choices=[{"index": 1, "delta": {"content": "y" * 40}}], usage=usage)])

    assert seen.usage(is_complete=True).usage.completion_tokens == 20


def test_without_a_report_text_is_counted_and_the_prompt_is_never_free() -> None:
    seen = meter()
    seen.see([said("12345678"), said("9")])

    assert seen.has_output
    assert not seen.has_usage
    assert seen.usage(is_complete=True).usage.prompt_tokens == 10
    assert seen.usage(is_complete=True).usage.completion_tokens == 3


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]},
        {"function_call": {"arguments": "{}"}},
    ],
)
def test_everything_that_is_generated_is_output(delta: dict[str, Any]) -> None:
    seen = meter()
    seen.see([chunk(choices=[{"delta": delta}])])

    assert seen.has_output


def test_a_whole_answer_without_usage_is_counted() -> None:
    seen = meter()
    seen.see_completion(
        msgspec.convert({"choices": [{"message": {"content": "x" * 400}}]}, UpstreamCompletion)
    )

    assert seen.has_output
    assert seen.usage(is_complete=True).usage.completion_tokens >= 100
