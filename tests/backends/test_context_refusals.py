"""Refusals of prompts that are too long, in the words of each engine and provider."""

import json

import pytest

from tollhouse.backends.context_refusals import ContextRefusal, context_refusal

LLAMA = "request (4031 tokens) exceeds the available context size (2048 tokens), try increasing it"
SGLANG = (
    "Requested token count exceeds the model's maximum context length of 202752 tokens. You "
    "requested a total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens "
    "for the completion."
)
VLLM = (
    "This model's maximum context length is 262144 tokens. However, you requested 128000 output "
    "tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 "
    "tokens. (parameter=input_tokens, value=134145)"
)
VLLM_OUTPUT = (
    "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context "
    "length is 4096 tokens and your request has 2778 input tokens (8000 > 4096 - 2778). None"
)
VLLM_OLD = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 "
    "in the messages, 500 in the completion). Please reduce the length of the messages."
)
VLLM_ENGINE = "The decoder prompt (length 4031) is longer than the maximum model length of 2048."
OPENAI = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in "
    "130012 tokens. Please reduce the length of the messages."
)
OPENAI_INPUT = (
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 "
    "tokens. Please reduce the length of the messages."
)
OPENAI_WINDOW = "Your input exceeds the context window of this model. Please adjust your input."
GEMINI = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
ANTHROPIC = "prompt is too long: 208310 tokens > 200000 maximum"
ANTHROPIC_OUTPUT = (
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input "
    "length or `max_tokens` and try again"
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (LLAMA, (4031, 2048)),
        (SGLANG, (170941, 202752)),
        (
            "Input length (4031 tokens) exceeds the maximum allowed length (2047 tokens).",
            (4031, 2047),
        ),
        (VLLM, (134145, 262144)),
        (VLLM_OUTPUT, (2778, 4096)),
        (VLLM_OLD, (4500, 4096)),
        (VLLM_ENGINE, (4031, 2048)),
        (OPENAI, (130012, 128000)),
        (OPENAI_INPUT, (300000, 272000)),
        (OPENAI_WINDOW, (None, None)),
        (GEMINI, (1200000, 1048576)),
        (ANTHROPIC, (208310, 200000)),
        (ANTHROPIC_OUTPUT, (190000, 200000)),
    ],
)
@pytest.mark.parametrize(
    "form",
    ['{"error":{"message":%s}}', '{"message":%s}', '{"detail":%s}', '[{"error":{"message":%s}}]'],
)
def test_the_words_of_each_are_recognized_with_their_numbers(
    words: str, expected: tuple[int | None, int | None], form: str
) -> None:
    body = (form % json.dumps(words)).encode()

    assert context_refusal(body) == ContextRefusal(*expected)


def test_members_that_name_it_are_enough() -> None:
    llama = {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8, "message": "no"}
    azure = {"code": "context_length_exceeded", "message": "Too long."}

    assert context_refusal(json.dumps({"error": llama}).encode()) == ContextRefusal(9, 8)
    assert context_refusal(json.dumps({"error": azure}).encode()) == ContextRefusal(None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b"\xff",
        b"[" * 10_000,
        b'{"error": 7}',
        b'{"error": {"code": ["context_length_exceeded"], "message": {"maximum": 1}}}',
        b'{"error": {"message": "max_tokens is too large: 50000. It supports at most 16384."}}',
        b'{"error": "Rate limit reached: 30000 tokens per minute."}',
    ],
)
def test_other_refusals_are_no_matter_of_the_context(body: bytes) -> None:
    assert context_refusal(body) is None


def test_absurd_numbers_are_left_out() -> None:
    body = b'{"message":"maximum context length is 99999999999999999999 tokens","n_ctx":-1}'

    assert context_refusal(body) == ContextRefusal(None, None)
