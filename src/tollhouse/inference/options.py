"""Which options of a request its model does not have: 501 each, with the option's name (OQ-42)."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from tollhouse.base.errors import InvalidRequest
from tollhouse.catalog.types import Backend, Model
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest, JsonObjectFormat, JsonSchemaFormat
from tollhouse.contract.combinations import is_set
from tollhouse.contract.errors import MediaTypeRefused, RemoteMediaRefused, UnsupportedOption
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
    "tools": "tools",
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
    "tools": ([],),
    "functions": ([],),
    "prompt_logprobs": (0,),
    "service_tier": ("auto", "default"),
}
"""Values that ask for nothing: a model that does not declare the option fulfils them (OQ-42)."""
_sampling_of = attrgetter(*_SAMPLING)
_featured_of = attrgetter(*_FEATURES)
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
        raise UnsupportedOption(name_of(param))
    takes_text = "text" in model.input_modalities
    for path, parts in _part_lists(request):
        for index, part in enumerate(parts):
            if part["type"] != "text" or not takes_text:
                _check_part(part, f"{path}[{index}]", model, backend, name_of)
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
            message = f"Invalid '{name}': the model's maximum is {model.max_output_length}."
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
    """A tool that is no function is web search: every other type was refused before."""
    for position, tool in enumerate(request.tools or []):
        if tool.get("type") in WEB_SEARCH_TYPES and "web_search" not in model.features:
            yield f"tools[{position}].type"


def _unsupported_forms(request: ChatRequest, model: Model) -> Iterator[str]:
    form = request.response_format
    if isinstance(form, JsonObjectFormat) and "json_mode" not in model.features:
        yield "response_format"
    if isinstance(form, JsonSchemaFormat) and "structured_outputs" not in model.features:
        yield "response_format"
    if asks_for_reasoning(request) and "reasoning" not in model.features:
        yield "reasoning"
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
    part: FreeObject, path: str, model: Model, backend: Backend, name_of: NameOf
) -> None:
    modality = _MODALITIES_OF_PARTS.get(part["type"])
    is_predicted = path.startswith("prediction")
    if modality not in model.input_modalities or (is_predicted and modality != "text"):
        raise UnsupportedOption(name_of(f"{path}.type"))
    member = unsafe_member(part, fetches_media=backend.fetches_images_safely)
    if member is not None:
        raise RemoteMediaRefused(name_of(f"{path}.{member}"))
    if (misplaced := misplaced_media(part)) is not None:
        member, media_type = misplaced
        raise MediaTypeRefused(name_of(f"{path}.{member}"), media_type)
