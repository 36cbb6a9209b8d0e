"""Leave out tools that the model's backend does not run, where the model declares so (OQ-216).

Only tools that run at a provider are left out. Without a function that the caller offers, an agent
could do nothing and would not know why, so a model without functions refuses them always.
"""

import msgspec
from msgspec import UNSET

from tollhouse.catalog.types import Model
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import DROPPING
from tollhouse.contract.field_checks import ABSENT
from tollhouse.contract.response_tools import FREE_CHOICES, WEB_SEARCH_TYPES, is_web_search
from tollhouse.inference.endpoint import TranslatedRequest


def without_unsupported_tools(
    translated: TranslatedRequest, model: Model
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the request without the tools that the model drops, and the types of these.

    Raises the refusal of a tool that no backend runs if the model drops none. A web search that
    only this model lacks stays in the request, and is refused with the other options.
    """
    request, refused = translated.request, translated.refused_tools
    if not model.drops_unsupported_tools:
        for tool in refused:
            tool.refusal.instead += f" {DROPPING}"
            raise tool.refusal.with_model(request.model)
        return request, ()
    dropped = [tool.kind for tool in refused]
    is_free = not translated.demands_tool and request.tool_choice in FREE_CHOICES
    if is_free and "web_search" not in model.features:
        request, searches = _without_web_search(request)
        dropped += searches
    return request, tuple(dict.fromkeys(dropped))


def _without_web_search(request: ChatRequest) -> tuple[ChatRequest, list[str]]:
    dropped = [tool["type"] for tool in request.tools or () if is_web_search(tool)]
    if request.web_search_options not in ABSENT:
        dropped.append(WEB_SEARCH_TYPES[0])
    if not dropped:
        return request, dropped
    tools = [tool for tool in request.tools or () if not is_web_search(tool)]
    kept = msgspec.structs.replace(
        request,
        tools=tools or UNSET,
        tool_choice=request.tool_choice if tools else UNSET,
        web_search_options=UNSET,
    )
    return kept, dropped
