"""Which options of a request its model does not have: 501 each, with the option's name (OQ-42)."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, cast, get_args

import msgspec
from msgspec import UNSET

from tollhouse.base.errors import InvalidRequest
from tollhouse.catalog.types import Backend, Modality, Model
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest, JsonObjectFormat, JsonSchemaFormat
from tollhouse.contract.combinations import is_set
from tollhouse.contract.errors import (
    MediaTypeRefused,
    ModelLacksFeature,
    RemoteMediaRefused,
    SupportedNowhere,
    UnsupportedOption,
)
from tollhouse.contract.free_form import unsupported_type
from tollhouse.contract.response_tools import WEB_SEARCH_TYPES
from tollhouse.inference.content_parts import misplaced_media, unsafe_member
from tollhouse.inference.surface import NameOf, same_name

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
"""Values that ask for nothing: a model that does not declare the option fulfils them (OQ-42)."""
_sampling_of = attrgetter(*_SAMPLING)
_featured_of = attrgetter(*_FEATURES)
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
    """Refuse the first option that would be dropped or misunderstood behind the gateway.

    Returns the request without values that ask for nothing and that the model does not declare.
    """
    undeclared = _undeclared(request, model)
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


def check_output_bound(request: ChatRequest, model: Model, name_of: NameOf = same_name) -> None:
    """A bound above the model's maximum is refused, never lowered in silence (OQ-32)."""
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
    efforts = [request.reasoning_effort, reasoning.effort if reasoning else None]
    return (
        request.thinking is True
        or any(is_set(effort) and effort != "none" for effort in efforts)
        or (bool(reasoning) and (reasoning.enabled is True or is_set(reasoning.max_tokens)))
    )


def _undeclared(request: ChatRequest, model: Model) -> dict[str, Any]:
    """Return the options that were sent and that the model does not declare."""
    sampling = _sent(_SAMPLING, _sampling_of(request))
    featured = _sent(_FEATURES, _featured_of(request))
    return {name: value for name, value in sampling if name not in model.sampling_parameters} | {
        name: value for name, value in featured if _FEATURES[name] not in model.features
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


def _sent(names: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    """The few that were sent with a meaning, of the many that could have been."""
    return [
        (name, value)
        for name, value in zip(names, values, strict=True)
        if value is not UNSET and value is not None
    ]


def _unsupported_tools(request: ChatRequest, model: Model) -> Iterator[str]:
    """A tool that the caller does not run is web search: every other type was refused before."""
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
        and is_set(request.reasoning.max_tokens)
        and "reasoning_budget" not in model.features
    ):
        yield "reasoning.max_tokens"
    if set(request.modalities or []) - {"text"} - set(model.output_modalities):
        yield "modalities"
    if is_set(request.audio) and "audio" not in model.output_modalities:
        yield "audio"


def _part_lists(request: ChatRequest) -> Iterator[tuple[str, list[FreeObject]]]:
    """Every list of content parts as they are forwarded, with its path."""
    for position, message in enumerate(request.messages):
        if isinstance(message.content, list):
            yield f"messages[{position}].content", message.content
    if isinstance(predicted := (request.prediction or {}).get("content"), list):
        yield "prediction.content", cast("list[FreeObject]", predicted)


def _check_part(
    part: FreeObject, path: str, name: str, model: Model, backend: Backend, name_of: NameOf
) -> None:
    """Refuse a part that the model called `name`, or its backend, does not take."""
    kind = part["type"]
    modality = _MODALITIES_OF_PARTS.get(kind)
    if modality is None:
        raise unsupported_type(
            name_of(f"{path}.type"), "content parts", _MODALITIES_OF_PARTS
        ).with_model(name)
    # A part may have a type, and nothing of it.
    member = name_of(f"{path}.{kind}" if part.get(kind) else f"{path}.type")
    if path.startswith("prediction") and modality != "text":
        raise SupportedNowhere(
            member, feature="predictions that are not text", instead="Send text.", model=name
        )
    if modality not in model.input_modalities:
        raise _no_input(member, name, modality)
    if (unsafe := unsafe_member(part, fetches_media=backend.fetches_images_safely)) is not None:
        raise RemoteMediaRefused(name_of(f"{path}.{unsafe}"), name)
    if (misplaced := misplaced_media(part)) is not None:
        raise MediaTypeRefused(name_of(f"{path}.{misplaced[0]}"), misplaced[1], name)


def _no_input(param: str, name: str, modality: str) -> UnsupportedOption:
    return ModelLacksFeature(
        param,
        name,
        lack=f"takes no {modality} as input",
        feature=modality,
        listed_in="input_modalities",
    )


def _reasoning_field(request: ChatRequest) -> str:
    """The control that turns reasoning on, as the caller sent it."""
    reasoning = request.reasoning
    if is_set(request.reasoning_effort) and request.reasoning_effort != "none":
        return "reasoning_effort"
    if reasoning and is_set(reasoning.effort) and reasoning.effort != "none":
        return "reasoning.effort"
    if reasoning and is_set(reasoning.max_tokens):
        return "reasoning.max_tokens"
    return "reasoning.enabled" if reasoning and reasoning.enabled is True else "thinking"


def _lacking(param: str, request: ChatRequest, model: Model, name_of: NameOf) -> UnsupportedOption:
    """The refusal of an option of `_unsupported`, with what the model would have to declare."""
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
    return ModelLacksFeature(
        name_of(param), request.model, lack=lack, feature=feature, listed_in=listed_in
    )


def _missing_output(request: ChatRequest, model: Model) -> str | None:
    """The first output that was asked for and the model does not give; None if no model could."""
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
