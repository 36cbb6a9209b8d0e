"""Getting a judge ready: its own tokenizer says which tokens are answers."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tollhouse.backends.port import BackendPort
from tollhouse.backends.types import Ask
from tollhouse.base.errors import GatewayError
from tollhouse.judging import variants
from tollhouse.judging.errors import AsymmetricTokenizer, JudgeFailed
from tollhouse.judging.types import FailureReason
from tollhouse.judging.variants import Variants

_PATH = "/tokenize"


class _Tokenized(Struct, frozen=True):
    """What tokenizers of engines answer; llama.cpp and vLLM agree on this much."""

    tokens: list[int]


async def find_variants(port: BackendPort, model: str, *, has_tokenizer: bool) -> Variants:
    """The spellings that count, or the usual ones where an engine does not show its tokenizer."""
    if not has_tokenizer:
        return variants.COMMON

    async def tokenize(text: str) -> Sequence[int]:
        return await _tokens_of(port, model, text)

    try:
        return await variants.find(tokenize)
    except AsymmetricTokenizer:
        raise JudgeFailed(FailureReason.UNSEEN) from None


async def _tokens_of(port: BackendPort, model: str, text: str) -> Sequence[int]:
    """Both engines' names for the same things: what one does not know, it does not read."""
    asked = {
        "model": model,
        "prompt": text,
        "add_special_tokens": False,
        "content": text,
        "add_special": False,
    }
    ask = Ask(path=_PATH, body=msgspec.json.encode(asked), is_at_host=True)
    try:
        found, _ = await port.fetch(ask, _Tokenized)
    except GatewayError as failure:
        raise JudgeFailed(FailureReason.UNREACHABLE) from failure
    return found.tokens
