"""Which members of the options of a Messages-shaped input are forwarded to a counter (OQ-195)."""

from typing import Final

import msgspec

from tollhouse.contract.messages import CountTokens
from tollhouse.inference.known_members import WORD, Shape, known_members, known_options

_TOOL: Final[Shape] = {
    "type": WORD,
    "name": str,
    "description": str,
    "input_schema": dict,
    "max_uses": int,
}
_OPTIONS: Final[dict[str, Shape]] = {
    "thinking": {"type": WORD, "budget_tokens": int},
    "tool_choice": {"type": WORD, "name": str, "disable_parallel_tool_use": bool},
    "output_config": {"effort": WORD, "format": {"type": WORD, "schema": dict}},
    "cache_control": {"type": WORD, "ttl": WORD},
}


def with_forwarded_options(body: CountTokens) -> CountTokens:
    """Return the input with only those members of its tools and options that are forwarded."""
    fields = known_options(body, _OPTIONS)
    if body.tools:
        fields["tools"] = [known_members(tool, _TOOL) for tool in body.tools]
    return msgspec.structs.replace(body, **fields)
