"""Refuse options that the model does not have: 501, with the name of the option (OQ-42)."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import UNSET

from tollhouse.base.errors import InvalidRequest
from tollhouse.catalog.types import Backend, Modality, Model
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest, JsonObjectFormat, JsonSchemaFormat
from tollhouse.contract.errors import (
    DROPPING,
    MediaTypeRefused,
    ModelLacksFeature,
    RemoteMediaRefused,
    SupportedNowhere,
    UnsupportedOption,
)
from tollhouse.contract.field_checks import ABSENT, unsupported_type
from tollhouse.contract.reasoning import Reasoning
from tollhouse.contract.response_tools import FREE_CHOICES, WEB_SEARCH_TYPES
from tollhouse.inference.content_parts import misplaced_media, unsafe_member
from tollhouse.inference.endpoint import NameOf, same_name

_SAMPLING = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
)
_FEATURES = {
    "functions": "functions",
    "verbosity": "verbosity",
    "prediction": "prediction",
    "service_tier": "service_tier",
    "prompt_cache_retention": "prompt_cache_retention",
    "prompt_logprobs": "prompt_logprobs",
    "web_search_options": "web_search",
    "cache_salt": "cache_salt",
}
_NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "stop": ("", []),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "functions": ([],),
    "verbosity": ("medium",),
    "prediction": ({},),
    "service_tier": ("auto", "default"),
    "prompt_cache_retention": ("in_memory",),
    "prompt_logprobs": (0,),
    "cache_salt": ("",),
}
"""Values that change nothing: a model that does not declare the option fulfils them (OQ-42)."""
_DECLARED_AS: Final = {name: name for name in _SAMPLING} | _FEATURES
"""The options that a model declares, and the name of each in its declaration."""
_values_of = attrgetter(*_DECLARED_AS)
_OTHERS: Final = (
    "n",
    "tools",
    "response_format",
    "thinking",
    "reasoning_effort",
    "reasoning",
    "modalities",
    "audio",
)
"""The options beside those of `_DECLARED_AS` that `_unsupported` checks."""
_others_of = attrgetter(*_OTHERS)
_NO_OTHERS: Final = (UNSET,) * len(_OTHERS)
_NOTHING_SENT: Final = (UNSET,) * len(_DECLARED_AS)
_NO_EFFORT = (*ABSENT, "none")
_OUTPUTS: tuple[str, ...] = get_args(Modality)
_MODALITIES_OF_PARTS = {
    "text": "text",
    "refusal": "text",
    "image_url": "image",
    "input_audio": "audio",
    "file": "file",
    "video_url": "video",
}


def check_options(
    request: ChatRequest, model: Model, backend: Backend, name_of: NameOf = same_name
) -> ChatRequest:
    """Raise for the first option that the backend would drop or misunderstand.

    Returns the request without undeclared options whose values change nothing.
    """
    undeclared = _undeclared(request, model)
    if undeclared or _others_of(request) != _NO_OTHERS:
        for param in _unsupported(request, model, undeclared):
            raise _lacking(param, request, model, name_of)
    takes_text = "text" in model.input_modalities
    for path, parts in _part_lists(request):
        for index, part in enumerate(parts):
            if part["type"] != "text" or not takes_text:
                _check_part(part, f"{path}[{index}]", request.model, model, backend, name_of)
    if not undeclared:
        return request
    return msgspec.structs.replace(request, **dict.fromkeys(undeclared, UNSET))


def without_optional(request: ChatRequest, model: Model, optional: frozenset[str]) -> ChatRequest:
    """Return the request without controls of reasoning that are optional and that the model lacks.

    A budget that the model lacks becomes reasoning without a budget.
    """
    missing = optional - model.features
    if "reasoning" in missing and asks_for_reasoning(request):
        return msgspec.structs.replace(
            request, thinking=UNSET, reasoning_effort=UNSET, reasoning=UNSET
        )
    reasoning = request.reasoning
    if "reasoning_budget" in missing and reasoning and reasoning.max_tokens not in ABSENT:
        return msgspec.structs.replace(request, reasoning=Reasoning(enabled=True))
    return request


def check_output_bound(request: ChatRequest, model: Model, name_of: NameOf = same_name) -> None:
    """Raise for an output bound above the model's maximum instead of lowering it (OQ-32)."""
    if not (request.max_tokens or request.max_completion_tokens or request.reasoning):
        return
    sent = {
        "max_tokens": request.max_tokens,
        "max_completion_tokens": request.max_completion_tokens,
        "reasoning.max_tokens": request.reasoning.max_tokens if request.reasoning else None,
    }
    for field, bound in sent.items():
        if bound and bound > model.max_output_length:
            name = name_of(field)
            message = (
                f"Invalid '{name}': the maximum of the model '{request.model}' is "
                f"{model.max_output_length}."
            )
            raise InvalidRequest("integer_above_max_value", message, param=name)


def asks_for_reasoning(request: ChatRequest) -> bool:
    """Whether any control turns reasoning on; one that turns it off never fails (A.14)."""
    reasoning = request.reasoning
    if request.thinking is True or request.reasoning_effort not in _NO_EFFORT:
        return True
    return bool(reasoning) and (
        reasoning.effort not in _NO_EFFORT
        or reasoning.enabled is True
        or reasoning.max_tokens not in ABSENT
    )


def _undeclared(request: ChatRequest, model: Model) -> dict[str, Any]:
    """Return the options that were sent and that the model does not declare."""
    values = _values_of(request)
    if values == _NOTHING_SENT:
        return {}
    return {
        name: value
        for (name, declared), value in zip(_DECLARED_AS.items(), values, strict=True)
        if value is not UNSET
        and value is not None
        and declared not in (model.features if name in _FEATURES else model.sampling_parameters)
    }


def _unsupported(
    request: ChatRequest, model: Model, undeclared: Mapping[str, Any]
) -> Iterator[str]:
    for name, value in undeclared.items():
        if value not in _NEUTRAL.get(name, ()):
            yield name
    if (request.n or 1) > 1 and "n" not in model.sampling_parameters:
        yield "n"
    yield from _unsupported_tools(request, model)
    yield from _unsupported_forms(request, model)


def _unsupported_tools(request: ChatRequest, model: Model) -> Iterator[str]:
    """Yield tools that the model lacks. All types but functions and web search were refused."""
    for position, tool in enumerate(request.tools or []):
        if tool.get("type") not in WEB_SEARCH_TYPES:
            if "tools" not in model.features:
                yield "tools"
        elif "web_search" not in model.features:
            yield f"tools[{position}].type"


def _unsupported_forms(request: ChatRequest, model: Model) -> Iterator[str]:
    form = request.response_format
    if isinstance(form, JsonObjectFormat) and "json_mode" not in model.features:
        yield "response_format"
    if isinstance(form, JsonSchemaFormat) and "structured_outputs" not in model.features:
        yield "response_format"
    if asks_for_reasoning(request) and "reasoning" not in model.features:
        yield _reasoning_field(request)
    if (
        request.reasoning
        and request.reasoning.max_tokens not in ABSENT
        and "reasoning_budget" not in model.features
    ):
        yield "reasoning.max_tokens"
    if set(request.modalities or []) - {"text"} - set(model.output_modalities):
        yield "modalities"
    if request.audio not in ABSENT and "audio" not in model.output_modalities:
        yield "audio"


def _part_lists(request: ChatRequest) -> Iterator[tuple[str, list[FreeObject]]]:
    """Yield every list of content parts with its path."""
    for position, message in enumerate(request.messages):
        if isinstance(message.content, list):
            yield f"messages[{position}].content", message.content
    if request.prediction and isinstance(predicted := request.prediction.get("content"), list):
        yield "prediction.content", cast("list[FreeObject]", predicted)


def _check_part(
    part: FreeObject, path: str, name: str, model: Model, backend: Backend, name_of: NameOf
) -> None:
    """Raise for a part that the model called `name`, or its backend, does not accept."""
    kind = part["type"]
    modality = _MODALITIES_OF_PARTS.get(kind)
    if modality is None:
        raise unsupported_type(
            name_of(f"{path}.type"), "content parts", _MODALITIES_OF_PARTS
        ).with_model(name)
    # A part may have a type without the member of that name.
    member = name_of(f"{path}.{kind}" if part.get(kind) else f"{path}.type")
    if path.startswith("prediction") and modality != "text":
        raise SupportedNowhere(
            param=member, feature="predictions that are not text", instead="Send text.", model=name
        )
    if modality not in model.input_modalities:
        raise _no_input(member, name, modality)
    if (unsafe := unsafe_member(part, fetches_media=backend.fetches_images_safely)) is not None:
        raise RemoteMediaRefused(param=name_of(f"{path}.{unsafe}"), model=name)
    if (misplaced := misplaced_media(part)) is not None:
        raise MediaTypeRefused(
            param=name_of(f"{path}.{misplaced[0]}"), media_type=misplaced[1], model=name
        )


def _no_input(param: str, name: str, modality: str) -> UnsupportedOption:
    return ModelLacksFeature(
        param=param,
        model=name,
        lack=f"takes no {modality} as input",
        feature=modality,
        listed_in="input_modalities",
    )


def _reasoning_field(request: ChatRequest) -> str:
    """Return the name of the control that turns reasoning on."""
    reasoning = request.reasoning
    if request.reasoning_effort not in _NO_EFFORT:
        return "reasoning_effort"
    if reasoning and reasoning.effort not in _NO_EFFORT:
        return "reasoning.effort"
    if reasoning and reasoning.max_tokens not in ABSENT:
        return "reasoning.max_tokens"
    return "reasoning.enabled" if reasoning and reasoning.enabled is True else "thinking"


def _lacking(param: str, request: ChatRequest, model: Model, name_of: NameOf) -> UnsupportedOption:
    """Return the error for an unsupported option, with what the model would have to declare."""
    if param in _SAMPLING or param == "n":
        lack, feature = f"does not take the parameter '{param}'", param
        listed_in = "supported_sampling_parameters"
    elif param in ("modalities", "audio"):
        feature = "audio" if param == "audio" else _missing_output(request, model)
        if feature is None:
            outputs = unsupported_type(param, "outputs", model.output_modalities)
            return outputs.with_model(request.model)
        lack, listed_in = f"gives no {feature} as output", "output_modalities"
    else:
        feature = _feature(param, request)
        lack, listed_in = f"does not have the feature '{feature}'", "supported_features"
    may_be_dropped = feature == "web_search" and request.tool_choice in FREE_CHOICES
    return ModelLacksFeature(
        param=name_of(param),
        model=request.model,
        lack=lack,
        feature=feature,
        listed_in=listed_in,
        advice=f" {DROPPING}" if may_be_dropped else "",
    )


def _missing_output(request: ChatRequest, model: Model) -> str | None:
    """Return the first requested output that the model lacks, or None if no model has it."""
    missing = (each for each in request.modalities or [] if each not in model.output_modalities)
    return next((each for each in missing if each in _OUTPUTS), None)


def _feature(param: str, request: ChatRequest) -> str:
    if param.startswith("tools"):
        return "tools" if param == "tools" else "web_search"
    if param == "response_format":
        is_schema = isinstance(request.response_format, JsonSchemaFormat)
        return "structured_outputs" if is_schema else "json_mode"
    if param == "reasoning.max_tokens":
        return "reasoning_budget"
    return _FEATURES.get(param, "reasoning")
