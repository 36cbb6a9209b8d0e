"""Translate a response request to the chat that is priced, judged and forwarded.

Options that a chat cannot express were refused before; only options without effect are dropped.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from tollhouse.contract import chat
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.response_tools import ToolIdentity, is_web_search
from tollhouse.contract.responses import (
    ResponseJsonObjectFormat,
    ResponseJsonSchemaFormat,
    ResponseRequest,
    ResponseText,
    output_bounds,
)
from tollhouse.inference.endpoint import NameOf
from tollhouse.inference.responses.client_tools import as_function_choice, as_functions
from tollhouse.inference.responses.input import Conversation
from tollhouse.inference.responses.tools import chat_tools

LOGPROBS: Final = "message.output_text.logprobs"
_NAMES: Final = {
    "messages": "input",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
    "reasoning_effort": "reasoning.effort",
}

_MEMBERS: Final = {"file": "file_data"}
"""The names of chat members in a response request."""


class TranslatedResponse(NamedTuple):
    """A chat, the names of its fields in the response request, and the tools of its functions."""

    chat: chat.ChatRequest
    name_of: NameOf
    tools: Mapping[str, ToolIdentity]


def translate(request: ResponseRequest, refused_tools: Collection[int] = ()) -> TranslatedResponse:
    """Return the chat for a checked request, without the tools at the refused positions."""
    conversation = _conversation(request)
    client_tools = as_functions(
        [tool for at, tool in enumerate(request.tools or []) if at not in refused_tools]
    )
    tools = chat_tools(client_tools.offered, as_function_choice(request.tool_choice or "auto"))
    bounds = output_bounds(request)
    text = request.text or ResponseText()
    translated = chat.ChatRequest(
        model=request.model,
        messages=conversation.messages,
        policy_ids=request.policy_ids,
        stream=bool(request.stream),
        max_completion_tokens=next(iter(bounds.values()), UNSET),
        temperature=request.temperature,
        top_p=request.top_p,
        frequency_penalty=request.frequency_penalty,
        presence_penalty=request.presence_penalty,
        reasoning_effort=request.reasoning.effort if request.reasoning else UNSET,
        safety_identifier=request.safety_identifier,
        user=request.user,
        tools=tools.functions,
        tool_choice=tools.choice,
        parallel_tool_calls=request.parallel_tool_calls if tools.functions else UNSET,
        response_format=_format(text),
        verbosity=text.verbosity,
        service_tier=request.service_tier,
        prompt_cache_key=request.prompt_cache_key,
        prompt_cache_retention=request.prompt_cache_retention,
        logprobs=wants_logprobs(request) or UNSET,
        top_logprobs=request.top_logprobs or UNSET,
        web_search_options=tools.web_search_options,
    )
    names = _naming(request, next(iter(bounds), "max_output_tokens"), conversation.names)
    return TranslatedResponse(translated, names, client_tools.origins)


def wants_logprobs(request: ResponseRequest) -> bool:
    """Whether log probabilities are requested, by name or by `top_logprobs`."""
    return LOGPROBS in (request.include or ()) or bool(request.top_logprobs)


def _conversation(request: ResponseRequest) -> Conversation:
    conversation = Conversation()
    if request.instructions:
        conversation.instruct(request.instructions)
    if isinstance(request.input, str):
        conversation.add({"role": "user", "content": request.input}, "input")
    else:
        for position, item in enumerate(request.input):
            conversation.add(item, f"input[{position}]")
    conversation.end()
    return conversation


def _format(text: ResponseText) -> chat.JsonObjectFormat | chat.JsonSchemaFormat | UnsetType:
    match text.format:
        case ResponseJsonObjectFormat():
            return chat.JsonObjectFormat()
        case ResponseJsonSchemaFormat() as form:
            schema = chat.JsonSchema(
                name=form.name,
                description=form.description,
                schema=form.schema,
                strict=form.strict,
            )
            return chat.JsonSchemaFormat(json_schema=schema)
        case _:
            return UNSET


def _web_search(tools: list[FreeObject]) -> str:
    found = (f"tools[{at}].type" for at, tool in enumerate(tools) if is_web_search(tool))
    return next(found, "tools")


def _naming(request: ResponseRequest, bound: str, parts: Mapping[str, str]) -> NameOf:
    logprobs = "include" if LOGPROBS in (request.include or ()) else "top_logprobs"
    names = _NAMES | {"max_completion_tokens": bound, "logprobs": logprobs}

    def name_of(param: str) -> str:
        """Return the caller's name of a field; messages and items differ in their positions."""
        if param in parts:
            return parts[param]
        part, dot, member = param.rpartition(".")
        part = part.removesuffix(".file")
        if part in parts:
            return f"{parts[part]}{dot}{_MEMBERS.get(member, member)}"
        if param == "web_search_options":
            return _web_search(request.tools or [])
        field = param.partition("[")[0]
        return names.get(field, param)

    return name_of
