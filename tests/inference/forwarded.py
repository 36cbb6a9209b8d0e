"""What of a chat request a backend is to receive, field by field, beside a model with everything.

Said anew here, from the register, so that what is forwarded is held against something else than
itself.
"""

from typing import Any

Body = dict[str, Any]

UPSTREAM_MODEL = "upstream-name"
OUTPUT_TOKENS_DEFAULT = 1024
AS_GIVEN = {
    *("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias", "seed"),
    *("stop", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
    *("response_format", "verbosity", "audio", "prediction", "service_tier"),
    *("prompt_cache_retention", "prompt_logprobs", "web_search_options"),
}
"""Null and empty lists of tools count as absent."""
NOT_WHEN_USUAL: Body = {"n": 1, "modalities": ["text"]}
"""As given, unless it asks for what is so anyway."""
IN_OTHER_WORDS = {
    *("model", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options"),
    *("reasoning", "reasoning_effort", "thinking", "logprobs", "top_logprobs"),
}
SEALED = {"prompt_cache_key", "cache_salt"}
"""What arrives belongs to one tenant and says nothing of what was given."""
KEPT = {
    *("policy_ids", "include_reasoning", "safety_identifier", "user", "structuredOutputs"),
    *("metadata", "store"),
}
"""Nobody's business behind the gateway."""
EFFORT_NAMES = {"ultracode": "xhigh"}


WAYS = (AS_GIVEN, set(NOT_WHEN_USUAL), IN_OTHER_WORDS, SEALED, KEPT)


def sent(body: Body) -> Body:
    """Without what is sealed."""
    wanted = {name: value for name, value in body.items() if value is not None}
    given = {
        name: value
        for name, value in wanted.items()
        if name in AS_GIVEN or (name in NOT_WHEN_USUAL and value != NOT_WHEN_USUAL[name])
    }
    for tools, choices in (
        ("tools", ("tool_choice", "parallel_tool_calls")),
        ("functions", ("function_call",)),
    ):
        if not given.get(tools):
            given = {name: value for name, value in given.items() if name not in (tools, *choices)}
    bound = wanted.get("max_completion_tokens") or wanted.get("max_tokens")
    return {
        "model": UPSTREAM_MODEL,
        "messages": [_message(message) for message in body["messages"]],
        "max_tokens": bound or OUTPUT_TOKENS_DEFAULT,
        **given,
        **_streaming(wanted),
        **_reasoning(wanted, (bound or OUTPUT_TOKENS_DEFAULT) - 1),
        **_logprobs(wanted),
    }


def _message(message: Body) -> Body:
    shown = {
        name: value for name, value in message.items() if value is not None and name != "model_id"
    }
    if isinstance(shown.get("content"), list):
        shown["content"] = [_part(part) for part in shown["content"]]
    return shown


def _part(part: Body) -> Body:
    """What a text or a picture is known to have, and nothing else."""
    if part.get("image_url") is not None:
        return {"type": "image_url", "image_url": {"url": part["image_url"]["url"]}}
    return {"type": "text", "text": part.get("text") or ""}


def _streaming(wanted: Body) -> Body:
    """Usage is asked for whoever wants it."""
    if not wanted.get("stream"):
        return {}
    options = {"include_usage": True, "continuous_usage_stats": True}
    return {"stream": True, "stream_options": options}


def _logprobs(wanted: Body) -> Body:
    """How many of the likeliest tokens are wanted asks for log probabilities too."""
    if wanted.get("logprobs"):
        return {name: wanted[name] for name in ("logprobs", "top_logprobs") if name in wanted}
    likeliest = wanted.get("top_logprobs")
    return {"logprobs": True, "top_logprobs": likeliest} if likeliest else {}


def _reasoning(wanted: Body, longest: int) -> Body:
    """An effort says more than a budget, and a budget more than a switch."""
    nested: Body = wanted.get("reasoning", {})
    if effort := wanted.get("reasoning_effort") or nested.get("effort"):
        return {"reasoning_effort": EFFORT_NAMES.get(effort, effort)}
    if budget := min(nested.get("max_tokens") or 0, longest):
        return {"reasoning": {"max_tokens": budget}}
    for switch in (wanted.get("thinking"), nested.get("enabled")):
        if switch is not None:
            return {"chat_template_kwargs": {"enable_thinking": switch}}
    return {}
