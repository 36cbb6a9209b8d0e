"""What is judged of a request and of an answer, as a judge reads it."""

from typing import Any

import msgspec
import pytest

from tollhouse.backends.types import UpstreamCompletion
from tollhouse.contract.chat import ChatRequest
from tollhouse.evaluation.content.rendering import completion_content, request_content
from tollhouse.evaluation.errors import NotEvaluable
from tollhouse.evaluation.types import Content

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def request(messages: list[Any] | None = None, **fields: Any) -> Content:  # noqa: ANN401 - JSON
    body = {"model": "m", "messages": messages or [{"role": "user", "content": "Hi"}], **fields}
    return request_content(msgspec.convert(body, ChatRequest))


def answer(*choices: dict[str, Any], **fields: Any) -> Content:  # noqa: ANN401 - JSON
    return completion_content(
        msgspec.convert({"choices": list(choices), **fields}, UpstreamCompletion)
    )


def shown(content: Content) -> list[tuple[str, str]]:
    return [(part.label, part.text) for part in content.parts]


def test_a_conversation_with_a_tool() -> None:
    content = request(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Weather?"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "function": {"name": "look", "arguments": '{"in":"Bern"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        ],
        tools=[{"type": "function", "function": {"name": "look", "description": "Says\nit"}}],
        stop=["END"],
        temperature=0.5,
        user="ann",
    )

    assert shown(content) == [
        (
            "tools[0]",
            '{"type":"function","function":{"name":"look","description":"(text 1)"}}',
        ),
        ("tools[0], text 1", "Says\nit"),
        ("messages[0] system", "Be brief."),
        ("messages[1] user[0]", "Weather?"),
        ("messages[1] user name", "ann"),
        (
            "messages[2] assistant tool_calls[0]",
            '{"id":"c1","function":{"name":"look","arguments":"(text 1)"}}',
        ),
        ("messages[2] assistant tool_calls[0], text 1", '{"in":"Bern"}'),
        ("messages[3] tool", "Rain"),
        ("messages[3] tool tool_call_id", "c1"),
        ("stop[0]", "END"),
    ]
    assert content.opening == 5


def test_definitions_stand_before_the_conversation_and_options_after_it() -> None:
    """So that a longer conversation begins as the shorter one did."""
    content = request(
        prediction={"type": "content", "content": "guessed"},
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": {}}},
    )

    labels = [part.label for part in content.parts]
    assert labels == ["response_format", "messages[0] user", "prediction", "prediction"]


def test_every_choice_is_judged_with_all_that_it_says() -> None:
    content = answer(
        {"index": 1, "message": {"content": "B", "reasoning_content": "thought"}},
        {
            "index": 0,
            "message": {
                "content": "A",
                "refusal": "I will not",
                "reasoning": "same",
                "reasoning_content": "same",
                "function_call": {"name": "f", "arguments": "{}"},
                "annotations": [{"type": "url_citation", "url_citation": {"title": "T"}}],
            },
        },
    )

    assert shown(content) == [
        ("choices[0]", "A"),
        ("choices[0] said", "AI will not"),
        ("choices[0] refusal", "I will not"),
        ("choices[0] reasoning", "same"),
        ("choices[0] function_call", '{"name":"f","arguments":"{}"}'),
        ("choices[0] annotations[0]", '{"type":"url_citation","url_citation":{"title":"T"}}'),
        ("choices[1]", "B"),
        ("choices[1] reasoning_content", "thought"),
    ]


def token(text: str, *guesses: str) -> dict[str, Any]:
    top = [{"token": guess, "logprob": -1.0, "bytes": [65]} for guess in guesses]
    return {"token": text, "logprob": -0.5, "bytes": [65], "top_logprobs": top}


def test_probabilities_are_judged_as_the_texts_that_their_tokens_make() -> None:
    logprobs = {"content": [token("go", "go", "bo"), token("od", "od", "mb")], "refusal": None}

    content = answer({"message": {"content": "good"}, "logprobs": logprobs})

    assert shown(content) == [
        ("choices[0]", "good"),
        ("choices[0] logprobs content guess 2", "bomb"),
    ]


def test_probabilities_that_say_something_else_than_the_text_are_judged() -> None:
    content = answer({"message": {"content": "good"}, "logprobs": {"content": [token("bad")]}})

    assert ("choices[0] logprobs content", "bad") in shown(content)


@pytest.mark.parametrize("logprobs", [{"tokens": ["bad"]}, {"content": [{"token": 1}]}, ["bad"]])
def test_probabilities_of_another_form_are_judged_as_they_are(logprobs: Any) -> None:  # noqa: ANN401
    content = answer({"message": {"content": "good"}, "logprobs": logprobs})

    assert content.parts[1].label.startswith("choices[0] logprobs")


def test_probabilities_of_the_prompt_are_judged_too() -> None:
    positions = [
        None,
        {"5": {"logprob": -1.0, "decoded_token": "ba"}, "6": {"decoded_token": "x"}},
        {"7": {"logprob": -2.0, "rank": 1, "decoded_token": "d"}},
    ]

    content = answer({"message": {}}, prompt_logprobs=positions)

    assert shown(content) == [
        ("prompt_logprobs guess 1", "bad"),
        ("prompt_logprobs guess 2", "x"),
    ]


@pytest.mark.parametrize(
    "part",
    [
        PICTURE,
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_data": "AAAA"}},
        {"text": "look", "image_url": "https://example.com/a.png"},
        {"type": "text", "text": "look", "video_url": "https://example.com/a.mp4"},
        {"video_url": {"url": "https://example.com/a.mp4"}},
    ],
)
def test_what_is_not_text_cannot_be_judged(part: dict[str, Any]) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "See:"}, part]}

    with pytest.raises(NotEvaluable) as failure:
        request([message])

    assert failure.value.param == "messages[0].content[1]"
    assert (failure.value.kind, failure.value.code) == (403, "policy_not_evaluable")
    assert failure.value.is_policy_failure
    assert failure.value.should_retry is False


def test_a_picture_in_an_answer_cannot_be_judged() -> None:
    with pytest.raises(NotEvaluable):
        answer({"message": {"content": [PICTURE]}})


def test_a_part_may_say_that_it_has_no_picture() -> None:
    part = {"type": "text", "text": "Hi", "image_url": None, "cache_control": {"type": "ephemeral"}}

    content = request([{"role": "user", "content": [part]}])

    assert shown(content) == [
        ("messages[0] user[0]", "Hi"),
        ("messages[0] user[0].cache_control", '{"type":"ephemeral"}'),
    ]


def arguments(text: str) -> list[str]:
    call = {"id": "c", "function": {"name": "f", "arguments": text}}
    return [part.text for part in answer({"message": {"tool_calls": [call]}}).parts[1:]]


@pytest.mark.parametrize(
    "text",
    [
        r'{"q":"\u0062omb"}',
        r'{"q":"\u0062omb","q":"tea"}',
        r'{"n":NaN,"q":"\u0062omb"}',
        r'{"s":"\ud800","q":"\u0062omb"}',
        r'{"q":"\u0062omb',
        '{"q":"tea"}\n' + r'{"q":"\u0062omb"}',
        r'"\u0062omb"',
        r'{"q":"{\"q\":\"\\u0062omb\"}"}',
        r'{"q":"{\"q\":\"\u005cu0062omb\"}"}',
        r'{"q":"\u005C\u005c\u005Cu0062omb"}',
    ],
)
def test_escaped_letters_are_also_shown_as_whoever_decodes_them_reads_them(text: str) -> None:
    """Lenient readers take what is no sound JSON, and some take the first of two names."""
    as_written, unescaped = arguments(text)

    assert as_written == text
    assert "bomb" in unescaped


def test_what_has_no_escaped_letters_is_shown_once() -> None:
    assert arguments(r'{"q":"a\nb\\c"}') == [r'{"q":"a\nb\\c"}']


def test_json_in_json_is_not_shown_over_and_over() -> None:
    text = r'{"q":"\u0062omb"}'
    for _ in range(7):
        text = msgspec.json.encode({"q": text}).decode()

    texts = [part.text for part in request([{"role": "user", "content": text}]).parts]
    assert len(texts) == 2
    assert "bomb" in texts[1]


def test_objects_that_are_too_deep_cannot_be_judged() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}

    with pytest.raises(NotEvaluable):
        answer({"message": {"tool_calls": [deep]}})


def test_names_that_json_must_escape_stand_beside_their_object_too() -> None:
    texts = shown(request(tools=[{'say "bomb"': 1, 'say "bread"': 2}]))

    assert ("tools[0], text 1", 'say "bomb"') in texts
    assert ("tools[0], text 2", 'say "bread"') in texts
    assert msgspec.json.decode(dict(texts)["tools[0]"]) == {'say "bomb"': 1, 'say "bread"': 2}
