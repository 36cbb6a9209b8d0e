"""What an engine says beside the answer is one of a few words, has a known form, or is dropped."""

from typing import Any

import msgspec
import pytest

from tests.judge.coverage import FINISH, chat_rendering, response_rendering
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion, UpstreamMessage
from tollhouse.evaluation.content.rendering import completion_content
from tollhouse.evaluation.errors import NotEvaluable
from tollhouse.inference.endpoint import AnswerEncoder
from tollhouse.inference.engine_fields import (
    LEAST_LOGPROB,
    asked_chunks,
    asked_completion,
    finish_reason,
    judged_chunks,
    judged_completion,
    service_tier,
    system_fingerprint,
)

HIDDEN = "zebra"
HIDDEN_BYTES = list(HIDDEN.encode())


@pytest.mark.parametrize(
    ("said", "becomes"),
    [
        (None, None),
        *[(word, word) for word in ("stop", "length", "tool_calls", "content_filter")],
        ("function_call", "function_call"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        (HIDDEN, "stop"),
        ("", "stop"),
    ],
)
def test_a_choice_ends_for_a_reason_of_the_contract(said: str | None, becomes: str | None) -> None:
    assert finish_reason(said) == becomes


def test_a_tier_is_one_that_can_be_asked_for() -> None:
    assert service_tier("flex") == "flex"
    assert service_tier(HIDDEN) is None
    assert service_tier(None) is None


@pytest.mark.parametrize("said", ["fp_44709d6fcb", "vllm-0.11.0:sha256", "b1234"])
def test_a_fingerprint_has_a_short_and_plain_form(said: str) -> None:
    assert system_fingerprint(said) == said


@pytest.mark.parametrize("said", [None, "", "a b", "a" * 65, "fp\n", "ä"])
def test_what_is_no_fingerprint_is_left_out(said: str | None) -> None:
    assert system_fingerprint(said) is None


def logprobs(**members: object) -> dict[str, Any]:
    guess = {"token": "w", "logprob": -2, "bytes": HIDDEN_BYTES, "id": 5, "note": HIDDEN}
    token = {**guess, "logprob": -1, "top_logprobs": [guess], **members}
    return {"content": [token], "refusal": None, "note": HIDDEN}


KNOWN = {
    "content": [
        {
            "token": "w",
            "logprob": -1.0,
            "bytes": [119],
            "top_logprobs": [{"token": "w", "logprob": -2.0, "bytes": [119]}],
        }
    ],
    "refusal": None,
}


def answer(name: str, said: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    choice = {name: {"content": "w"}, "logprobs": said, "finish_reason": HIDDEN}
    return {"choices": [choice], "system_fingerprint": HIDDEN, "service_tier": HIDDEN}


def completion(said: Any) -> UpstreamCompletion:  # noqa: ANN401 - any JSON
    return msgspec.convert(answer("message", said), UpstreamCompletion)


def chunk(said: Any) -> UpstreamChunk:  # noqa: ANN401 - any JSON
    return msgspec.convert(answer("delta", said), UpstreamChunk)


def test_log_probabilities_are_rebuilt_from_the_texts_of_their_tokens() -> None:
    whole, streamed = judged_completion(completion(logprobs())), judged_chunks([chunk(logprobs())])

    assert whole.choices[0].logprobs == KNOWN
    assert streamed[0].choices[0].logprobs == KNOWN


@pytest.mark.parametrize(
    "said", [HIDDEN, [HIDDEN], {"content": HIDDEN}, {"content": [{"logprob": 1}]}]
)
def test_log_probabilities_of_another_form_are_dropped(said: object) -> None:
    assert judged_completion(completion(said)).choices[0].logprobs is None


def test_the_bytes_of_a_part_of_a_character_are_dropped() -> None:
    said = logprobs(token="\ufffd", bytes=[0xE2, 0x82])

    found = judged_completion(completion(said)).choices[0].logprobs

    assert found["content"][0]["bytes"] is None


@pytest.fixture(params=["chat", "responses"])
def rendering(request: pytest.FixtureRequest) -> AnswerEncoder:
    return chat_rendering() if request.param == "chat" else response_rendering()


def test_a_held_answer_shows_nothing_that_only_its_engine_said(rendering: AnswerEncoder) -> None:
    told = rendering.complete(judged_completion(completion(logprobs())), FINISH).decode()

    assert '"w"' in told
    assert HIDDEN not in told
    assert ",".join(map(str, HIDDEN_BYTES)) not in told


def test_a_held_stream_shows_nothing_that_only_its_engine_said(rendering: AnswerEncoder) -> None:
    held = judged_chunks([chunk(logprobs()), chunk(None)])

    closing = b"".join(rendering.closing(FINISH))
    told = (rendering.opening(()) + rendering.records(held) + closing).decode()

    assert '"w"' in told
    assert HIDDEN not in told
    assert ",".join(map(str, HIDDEN_BYTES)) not in told


def test_an_answer_that_nobody_judges_keeps_the_engine_s_bytes() -> None:
    told = chat_rendering().complete(completion(logprobs()), FINISH).decode()

    assert ",".join(map(str, HIDDEN_BYTES)) in told


def test_a_record_without_such_fields_stays_the_same_object() -> None:
    plain = msgspec.convert({"choices": [{"delta": {"content": "w"}}]}, UpstreamChunk)

    assert judged_chunks([plain])[0] is plain


def indexed(name: str, *indexes: int) -> dict[str, Any]:
    return {"choices": [{"index": index, name: {"content": "w"}} for index in indexes]}


def test_choices_that_nobody_asked_for_are_dropped() -> None:
    whole = msgspec.convert(indexed("message", -1, 0, 1, 2, 10**15), UpstreamCompletion)
    streamed = [msgspec.convert(indexed("delta", 1), UpstreamChunk) for _ in range(2)]
    streamed.append(msgspec.convert(indexed("delta", 0, 122), UpstreamChunk))

    assert [choice.index for choice in asked_completion(whole, 2).choices] == [0, 1]
    kept = [[choice.index for choice in chunk.choices] for chunk in asked_chunks(streamed, 1)]
    assert kept == [[], [], [0]]
    assert asked_chunks(streamed, 123) is streamed


@pytest.mark.parametrize("said", [122, 1e-9, -(10**5), None])
def test_a_log_probability_is_the_logarithm_of_a_probability(said: float | None) -> None:
    found = judged_completion(completion(logprobs(logprob=said))).choices[0].logprobs

    assert found["content"][0]["logprob"] == LEAST_LOGPROB


def test_probabilities_of_the_prompt_are_dropped_from_a_held_answer() -> None:
    said = {"choices": [], "prompt_logprobs": [{"122": {"logprob": -1, "rank": 101}}]}

    assert judged_completion(msgspec.convert(said, UpstreamCompletion)).prompt_logprobs is None


EXTRA = {"extra_content": {"google": {"thought_signature": "ab"}}}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "becomes"),
    [
        ({"content": "w"}, {"content": "w"}),
        *[
            (
                {"content": [{"type": "text", "text": said, "annotations": HIDDEN_BYTES}]},
                {"content": [{"type": "text", "text": ""}]},
            )
            for said in (HIDDEN_BYTES, 122, [[122], [101]], [True, False], {"a": 1}, None)
        ],
        (
            {"content": [{"type": "output_text", "text": "w", "logprobs": HIDDEN_BYTES}]},
            {"content": [{"type": "text", "text": "w"}]},
        ),
        (
            {"content": [{"type": "refusal", "refusal": "no", "text": HIDDEN_BYTES}]},
            {"content": [{"type": "refusal", "refusal": "no"}]},
        ),
        (
            {"tool_calls": [{**CALL, **EXTRA, "index": 122, "note": HIDDEN, "type": HIDDEN}]},
            {"tool_calls": [{**CALL, **EXTRA}]},
        ),
        (
            {"tool_calls": [{"id": 5, "function": {"name": 5, "arguments": [1], "note": HIDDEN}}]},
            {
                "tool_calls": [
                    {"id": "", "type": "function", "function": {"name": "", "arguments": "[1]"}}
                ]
            },
        ),
        (
            {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "w"}}]},
            {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "w"}}]},
        ),
        (
            {"function_call": {"name": "f", "arguments": "{}", "note": HIDDEN}},
            {"function_call": {"name": "f", "arguments": "{}"}},
        ),
    ],
)
def test_a_held_message_has_texts_and_calls_of_the_contract(
    message: dict[str, Any], becomes: dict[str, Any]
) -> None:
    said = msgspec.convert({"choices": [{"message": message}]}, UpstreamCompletion)

    assert judged_completion(said).choices[0].message == msgspec.convert(becomes, UpstreamMessage)


def test_a_part_that_is_no_text_is_left_for_the_judge_to_refuse() -> None:
    picture = {"type": "image_url", "image_url": "data:image/png;base64,AA"}
    said = msgspec.convert({"choices": [{"message": {"content": [picture]}}]}, UpstreamCompletion)

    with pytest.raises(NotEvaluable):
        completion_content(judged_completion(said))


def test_a_signature_is_dropped_while_a_policy_reads_the_answer() -> None:
    signed = {"message": {"content": "Hi", "reasoning": "Hm.", "signature": "c2ln"}}
    delta = {"reasoning": "Hm.", "signature": "c2ln"}

    whole = judged_completion(msgspec.convert({"choices": [signed]}, UpstreamCompletion))
    (chunk,) = judged_chunks([msgspec.convert({"choices": [{"delta": delta}]}, UpstreamChunk)])

    assert (whole.choices[0].message.reasoning, whole.choices[0].message.signature) == ("Hm.", None)
    assert (chunk.choices[0].delta.reasoning, chunk.choices[0].delta.signature) == ("Hm.", None)
