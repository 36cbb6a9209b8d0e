"""Read from a Messages request what a chat cannot say, for backends that speak Messages (OQ-229).

Blocks that are read here are translated to a chat as well, so that their text is priced and judged.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.message_request import MessageRequest
from tollhouse.inference.content_parts import is_signature
from tollhouse.inference.messages.content import Block


def signed_thoughts(blocks: Sequence[Block]) -> list[FreeObject]:
    """Return the thinking that begins an assistant's turn, or nothing if a part of it cannot stay.

    A signature has the form of base64: text that no policy reads must not pass as one.
    """
    signed: list[FreeObject] = []
    has_other = False
    for block in blocks:
        if block.kind != "thinking":
            has_other = True
            continue
        signature = block.fields.get("signature")
        if has_other or not is_signature(signature):
            return []
        thinking = block.fields.get("thinking")
        signed.append({"type": "thinking", "thinking": thinking, "signature": signature})
    return signed


def asks_for_cache(request: MessageRequest) -> bool:
    """Whether the caller marks any part of the prompt to be cached."""
    return bool(request.cache_control) or any(
        block.get("cache_control") for block in _all_blocks(request)
    )


def _all_blocks(request: MessageRequest) -> Iterator[FreeObject]:
    contents: list[Any] = [request.system, request.tools]
    contents += [message.get("content") for message in request.messages]
    for content in contents:
        if isinstance(content, list):
            for block in cast("list[Any]", content):
                if isinstance(block, dict):
                    yield cast("FreeObject", block)
