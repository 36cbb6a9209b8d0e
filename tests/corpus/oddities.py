"""What callers send beside a plain question, for each form of request. `%TEXT%` is the question."""

from typing import Any

Fields = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
IMAGE = f"data:image/png;base64,{PIXEL}"
REMOTE = "https://example.com/toll.png"
UNICODE = "Zoll \u2028 f\u00fcr \u9053\u8def \U0001f6a7 \\u0000 </s> %TEXT%"
SCHEMA = {"type": "object", "properties": {"fee": {"type": "integer"}}, "required": ["fee"]}
LOOSE = {"type": "object", "properties": {"fee": {"type": ["number", "null"]}}, "x-extra": {"a": 1}}


def said(role: str, content: object = "%TEXT%", **members: object) -> Fields:
    """Return a message of chat or Messages, or an item of a response's input."""
    return {"role": role, "content": content, **members}


USER = said("user")
EARLIER = said("assistant", "It is open.")
FUNCTION = {"name": "pay", "description": "Pay it.", "parameters": SCHEMA}
TOOL: Fields = {"type": "function", "function": FUNCTION}
FLAT: Fields = {"type": "function", **FUNCTION}
GIVEN: Fields = {"name": "pay", "description": "Pay it.", "input_schema": SCHEMA}
CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"fee":1}'}}
CALLING = said("assistant", None, tool_calls=[CALL])
RESULT = said("tool", "Paid.", tool_call_id="c1")
TEXT_PART = {"type": "text", "text": "%TEXT%"}
IMAGE_PART = {"type": "image_url", "image_url": {"url": IMAGE}}
REMOTE_PART = {"type": "image_url", "image_url": {"url": REMOTE}}
REFUSED = said("assistant", [{"type": "refusal", "refusal": "No."}])
CHOSEN = {"type": "function", "function": {"name": "x"}}
NAMED_SCHEMA = {"name": "s", "schema": SCHEMA}
PREDICTED = {"type": "content", "content": "A"}
RULES = [said("system", "Be brief."), said("developer", "Be kind.")]
ABSENT: Fields = {
    "unknown-policy": {"policy_ids": ["pol_" + "0" * 32]},
    "other-model": {"model": "corpus/absent"},
}

CHAT: dict[str, Fields] = ABSENT | {
    "plain": {},
    "unknown": {"frobnicate": 1},
    "unknown-in-message": {"messages": [said("user", colour="red")]},
    "unknown-in-part": {"messages": [said("user", [TEXT_PART | {"cache_control": {"a": 1}}])]},
    "unknown-part": {"messages": [said("user", [TEXT_PART, {"type": "hologram", "x": 1}])]},
    "free-form": {"metadata": {"team": "roads", "n": [1, {"a": None}]}, "logit_bias": {"50": -100}},
    "tools": {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    "tools-loose": {"tools": [TOOL | {"function": FUNCTION | {"parameters": LOOSE}}]},
    "tools-misfit": {"tools": [TOOL], "tool_choice": CHOSEN},
    "results": {"messages": [USER, CALLING, RESULT, USER], "tools": [TOOL]},
    "functions": {"functions": [FUNCTION], "function_call": {"name": "pay"}},
    "image": {"messages": [said("user", [TEXT_PART, IMAGE_PART])]},
    "image-remote": {"messages": [said("user", [TEXT_PART, REMOTE_PART])]},
    "refusal": {"messages": [USER, said("assistant", "No.", refusal="No."), USER]},
    "refusal-part": {"messages": [USER, REFUSED, USER]},
    "choices": {"n": 2},
    "choices-many": {"n": 129},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "prompt-logprobs": {"prompt_logprobs": 1},
    "stop": {"stop": ["hills", "sea"]},
    "usage-on": {"stream_options": {"include_usage": True}},
    "usage-off": {"stream_options": {"include_usage": False}},
    "schema": {"response_format": {"type": "json_schema", "json_schema": NAMED_SCHEMA}},
    "json": {"response_format": {"type": "json_object"}},
    "reasoning": {"reasoning_effort": "high"},
    "sampling": {"temperature": 0.5, "top_p": 0.9, "seed": 7, "presence_penalty": -0.5},
    "nulls": {"stop": None, "tools": None, "user": None, "n": None, "stream_options": None},
    "empty": {"stop": [], "tools": [], "functions": [], "metadata": {}},
    "empty-content": {"messages": [said("user", ""), USER, said("assistant", None)]},
    "bound": {"max_tokens": 3},
    "bound-twice": {"max_tokens": 3, "max_completion_tokens": 3},
    "bound-above": {"max_completion_tokens": 5_000},
    "cache": {"prompt_cache_key": "a", "cache_salt": "b", "user": "c", "safety_identifier": "d"},
    "unicode": {"messages": [said("user", UNICODE, name="r\u00f3s")]},
    "turns": {"messages": [*RULES, USER, EARLIER, USER]},
    "extras": {"verbosity": "low", "service_tier": "flex", "prediction": PREDICTED},
    "wrong-type": {"messages": "%TEXT%"},
    "store": {"store": True},
}
INPUT_TEXT = {"type": "input_text", "text": "%TEXT%"}
ITEM = {"type": "message", **said("user", [INPUT_TEXT])}
CALLED = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": '{"fee":1}'}
RETURNED = {"type": "function_call_output", "call_id": "c1", "output": "Paid."}
RESPONSES: dict[str, Fields] = ABSENT | {
    "plain": {},
    "unknown": {"frobnicate": 1},
    "unknown-in-message": {"input": [ITEM | {"colour": "red"}]},
    "unknown-in-part": {"input": [said("user", [INPUT_TEXT | {"x": 1}])]},
    "unknown-part": {"input": [said("user", [{"type": "hologram"}]), ITEM]},
    "free-form": {"metadata": {"team": "roads"}, "client_metadata": {"a": [1, None]}},
    "tools": {"tools": [FLAT], "tool_choice": "required", "parallel_tool_calls": False},
    "tools-loose": {"tools": [FLAT | {"parameters": LOOSE, "strict": False}]},
    "tools-misfit": {"tools": [FLAT], "tool_choice": {"type": "function", "name": "x"}},
    "tools-hosted": {"tools": [{"type": "web_search"}]},
    "results": {"input": [ITEM, CALLED, RETURNED, ITEM], "tools": [FLAT]},
    "custom": {"tools": [{"type": "custom", "name": "shell"}], "tool_choice": "auto"},
    "image": {"input": [said("user", [INPUT_TEXT, {"type": "input_image", "image_url": IMAGE}])]},
    "image-remote": {"input": [said("user", [{"type": "input_image", "image_url": REMOTE}])]},
    "refusal": {"input": [ITEM, REFUSED, ITEM]},
    "logprobs": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    "usage-off": {"stream_options": {"include_obfuscation": False}},
    "schema": {"text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}},
    "json": {"text": {"format": {"type": "json_object"}}},
    "reasoning": {"reasoning": {"effort": "high", "summary": "auto"}},
    "encrypted": {
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "reasoning", "summary": [], "encrypted_content": "YWJj"}, ITEM],
    },
    "sampling": {"temperature": 0.5, "top_p": 0.9},
    "nulls": {"tools": None, "user": None, "metadata": None, "reasoning": None, "store": None},
    "empty": {"tools": [], "include": [], "metadata": {}},
    "empty-content": {"input": [said("user", []), ITEM]},
    "bound": {"max_output_tokens": 3},
    "bound-twice": {"max_output_tokens": 3, "max_tokens": 3},
    "bound-above": {"max_output_tokens": 5_000},
    "cache": {"prompt_cache_key": "mine", "user": "u", "safety_identifier": "s"},
    "unicode": {"input": UNICODE},
    "turns": {"instructions": "Be brief.", "input": [RULES[1], ITEM, EARLIER, ITEM]},
    "extras": {"truncation": "auto", "service_tier": "flex", "text": {"verbosity": "low"}},
    "wrong-type": {"input": {"role": "user"}},
    "stored": {"previous_response_id": "resp_1"},
    "store": {"store": True},
}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
REMOTE_BLOCK = {"type": "image", "source": {"type": "url", "url": REMOTE}}
USE = {"type": "tool_use", "id": "t1", "name": "pay", "input": {"fee": 1}}
DONE = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Paid."}]}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "YWJj"}
COUNT: dict[str, Fields] = ABSENT | {
    "plain": {},
    "unknown": {"frobnicate": 1},
    "unknown-in-message": {"messages": [said("user", colour="red")]},
    "unknown-in-part": {"messages": [said("user", [TEXT_PART | {"citations": {"enabled": True}}])]},
    "unknown-part": {"messages": [said("user", [{"type": "hologram"}])]},
    "tools": {"tools": [GIVEN], "tool_choice": {"type": "any"}},
    "tools-loose": {"tools": [GIVEN | {"input_schema": LOOSE, "x": 1}]},
    "tools-hosted": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "results": {"messages": [USER, said("assistant", [USE]), said("user", [DONE, TEXT_PART])]},
    "image": {"messages": [said("user", [TEXT_PART, BLOCK])]},
    "image-remote": {"messages": [said("user", [REMOTE_BLOCK])]},
    "schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "reasoning": {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
    "thought": {"messages": [USER, said("assistant", [THOUGHT, TEXT_PART]), USER]},
    "empty": {"tools": [], "system": []},
    "empty-content": {"messages": [said("user", []), USER]},
    "cache": {"cache_control": {"type": "ephemeral"}},
    "unicode": {"messages": [said("user", UNICODE)]},
    "turns": {"system": [{"type": "text", "text": "Be brief."}], "messages": [USER, EARLIER, USER]},
    "extras": {"speed": "fast"},
    "wrong-type": {"messages": "%TEXT%"},
}
MESSAGES: dict[str, Fields] = COUNT | {
    "free-form": {"metadata": {"user_id": "u", "a": [1]}, "diagnostics": {"b": None}},
    "tools-misfit": {"tools": [GIVEN], "tool_choice": {"type": "tool", "name": "x"}},
    "stop": {"stop_sequences": ["hills", "sea"]},
    "reasoning-adaptive": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    "sampling": {"temperature": 0.5, "top_p": 0.9},
    "top-k": {"top_k": 5},
    "nulls": {"stop_sequences": None, "tools": None, "system": None, "top_k": None},
    "bound": {"max_tokens": 3},
    "bound-above": {"max_tokens": 5_000},
    "bound-missing": {"max_tokens": None},
}
FORMS: dict[str, tuple[str, dict[str, Fields]]] = {
    "chat": ("/v1/chat/completions", CHAT),
    "responses": ("/v1/responses", RESPONSES),
    "messages": ("/compat/anthropic/v1/messages", MESSAGES),
    "count": ("/v1/messages/count_tokens", COUNT),
    "count-compat": ("/compat/anthropic/v1/messages/count_tokens", COUNT),
}
"""Each form of request: its path, and what its body has in place of a plain question's members."""

HEADERS: dict[str, dict[str, str]] = {
    "key-header": {"authorization": "", "x-api-key": "%KEY%"},
    "two-keys": {"x-api-key": "%KEY%"},
    "no-key": {"authorization": ""},
    "wrong-key": {"authorization": "Bearer thk_wrong"},
    "wrong-scheme": {"authorization": "Basic %KEY%"},
    "idempotency": {"idempotency-key": "one", "x-stainless-retry-count": "1", "user-agent": "A/1"},
    "own-ids": {"x-request-id": "a", "x-client-request-id": "b", "openai-organization": "org-1"},
    "session": {"x-session-affinity": "s-1", "x-claude-code-session-id": "s-2"},
    "traced": {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "a=b"},
    "betas": {"anthropic-version": "2023-06-01", "anthropic-beta": "output-128k-2025-02-19,x"},
    "old-version": {"anthropic-version": "1999-01-01"},
    "accepts": {"accept": "text/event-stream", "accept-encoding": "gzip, br"},
    "no-type": {"content-type": ""},
    "text-type": {"content-type": "text/plain"},
    "charset": {"content-type": "application/json; charset=utf-8"},
    "compressed": {"content-encoding": "gzip"},
}
"""Headers that replace or join the plain ones, for every form; an empty one is not sent."""

RAW: dict[str, str] = {
    "no-body": "",
    "no-object": "[1]",
    "cut-body": '{"model":"%MODEL%","messages":[{"role":',
    "twice": '{"model":"%MODEL%","model":"%MODEL%","messages":[],"input":"%TEXT%"}',
    "huge-number": '{"model":"%MODEL%","temperature":1e999,"input":"%TEXT%","messages":[]}',
    "deep": '{"model":"%MODEL%","metadata":' + '{"a":' * 200 + "1" + "}" * 200 + "}",
    "surrogate": '{"model":"%MODEL%","input":"\\ud800 %TEXT%","messages":[]}',
}
"""Bodies that are no request of any form."""
