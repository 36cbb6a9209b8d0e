"""What we answer, against wire samples and the types of the official SDK."""

import json
from typing import Any

import msgspec
import pytest
from openai.types.chat import ChatCompletion as SdkCompletion
from openai.types.chat import ChatCompletionChunk as SdkChunk
from openai.types.model import Model as SdkModel
from openai.types.responses import Response as SdkResponse

from tollhouse.contract import completions, keys, models, policies, response_result

ID = "11111111-1111-4111-8111-111111111111"


def chunk(delta: str, *, finish_reason: str = "null", usage: str = ',"usage":null') -> str:
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish_reason}}}'
    return record(f"[{choice}]", usage)


def record(choices: str, usage: str) -> str:
    return (
        '{"id":"chatcmpl-PLACEHOLDER0001","object":"chat.completion.chunk","created":1700000000,'
        '"model":"example/model-a","service_tier":null,"system_fingerprint":null,'
        f'"choices":{choices}{usage}}}'
    )


FIRST_CALL = '{"name":"get_weather","arguments":""}'
USAGE = (
    '{"prompt_tokens":42,"completion_tokens":31,"total_tokens":73,'
    '"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}'
)
CHUNKS = [
    chunk('{"role":"assistant","content":"","refusal":null}'),
    chunk('{"content":"Let me"}'),
    chunk('{"reasoning":"Hm.","reasoning_content":"Hm."}'),
    chunk(
        f'{{"tool_calls":[{{"index":0,"id":"call_A","type":"function","function":{FIRST_CALL}}}]}}'
    ),
    chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]}'),
    chunk("{}", finish_reason='"tool_calls"'),
    chunk("{}", finish_reason='"stop"', usage=""),
    record("[]", f',"usage":{USAGE}'),
]
RESPONSE: dict[str, Any] = {
    "id": "resp_PLACEHOLDER0001",
    "object": "response",
    "created_at": 1700000000,
    "completed_at": 1700000001,
    "status": "completed",
    "background": False,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": 1024,
    "max_tool_calls": None,
    "metadata": {},
    "model": "example/model-a",
    "output": [
        {
            "id": "msg_PLACEHOLDER0001",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}
            ],
        }
    ],
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 17,
    },
    "user": None,
}
ENDINGS: list[dict[str, Any]] = [
    {},
    {"status": "in_progress", "completed_at": None, "output": [], "usage": None},
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    {
        "status": "failed",
        "error": {"code": "server_error", "message": "It stopped.", "request_id": "req_1"},
    },
]


@pytest.mark.parametrize("text", CHUNKS)
def test_a_chunk_of_the_sample_is_written_as_it_was_read(text: str) -> None:
    read = msgspec.json.decode(text, type=completions.ChatChunk)

    assert msgspec.json.encode(read).decode() == text
    SdkChunk.model_validate_json(text, strict=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_response_of_the_sample_is_written_as_it_was_read(ending: dict[str, Any]) -> None:
    text = json.dumps(RESPONSE | ending, separators=(",", ":"))

    read = msgspec.json.decode(text, type=response_result.ResponseResult)

    assert msgspec.json.encode(read).decode() == text
    SdkResponse.model_validate_json(text)


def test_the_smallest_completion_satisfies_the_sdk() -> None:
    message = completions.CompletionMessage(role="assistant", content="Hello.")
    completion = completions.ChatCompletion(
        id="chatcmpl-1",
        created=1700000000,
        model="example/model-a",
        choices=[completions.Choice(index=0, message=message, finish_reason="stop")],
        usage=completions.Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
    )

    read = SdkCompletion.model_validate_json(msgspec.json.encode(completion))

    assert read.choices[0].message.content == "Hello."


def test_a_model_satisfies_the_sdk() -> None:
    model = models.Model(
        id="example/model-a",
        created=1700000000,
        owned_by="example",
        name="model-a",
        display_name="Model A",
        access=models.ModelAccess(
            required_checks=[], available=True, locked=False, missing_requirements=[]
        ),
        input_modalities=["text"],
        output_modalities=["text"],
        pricing=models.ModelPricing(
            prompt="0.000001",
            completion="0.000002",
            image="0",
            request="0",
            input_cache_read="0",
        ),
        supported_sampling_parameters=["temperature"],
        sampling_limits={},
        sampling_limits_revision="0",
        supported_features=[],
        is_ready=True,
        quantization="",
        context_length=2048,
        max_output_length=1024,
        root="example/model-a",
        parent=None,
    )

    assert SdkModel.model_validate_json(msgspec.json.encode(model)).id == "example/model-a"


def project_key(value: str | msgspec.UnsetType = msgspec.UNSET) -> keys.ProjectKey:
    return keys.ProjectKey(
        id=ID,
        name="ci",
        redacted_value="thp_abcd...wxyz",
        value=value,
        created_at=1700000000,
        last_used_at=None,
        expires_at=None,
        owner=keys.ProjectKeyOwner(id=ID, name="search"),
        status="active",
        permissions=["inference:write"],
    )


def test_a_key_shows_its_value_only_where_it_is_set() -> None:
    plain: Any = msgspec.to_builtins(project_key())
    created: Any = msgspec.to_builtins(project_key("thp_whole"))

    assert plain == {
        "object": "organization.project.api_key",
        "id": ID,
        "name": "ci",
        "redacted_value": "thp_abcd...wxyz",
        "created_at": 1700000000,
        "last_used_at": None,
        "expires_at": None,
        "owner": {"id": ID, "type": "project", "name": "search"},
        "status": "active",
        "permissions": ["inference:write"],
    }
    assert created == plain | {"value": "thp_whole"}


def test_an_empty_page_has_null_ids() -> None:
    page = keys.AdminKeyList(data=[], has_more=False, first_id=None, last_id=None)

    assert msgspec.to_builtins(page) == {
        "object": "list",
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }


def test_a_new_policy_has_nothing_published() -> None:
    draft = policies.PolicyDraft(
        rule="Is it?",
        direction="both",
        mode="monitoring",
        scope="unattached",
        project_ids=[],
        match_threshold_basis_points=None,
        base_version=0,
    )
    policy = policies.Policy(
        id="pol_1",
        name="n",
        description="",
        state="draft",
        revision=1,
        has_unpublished_changes=True,
        created_at=1,
        updated_at=1,
        draft=draft,
        current_version=None,
        published=None,
    )

    wire: Any = msgspec.to_builtins(policy)

    assert (wire["object"], wire["state"]) == ("organization.policy", "draft")
    assert (wire["current_version"], wire["published"]) == (None, None)
