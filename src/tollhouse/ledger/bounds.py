"""How many tokens a backend can bill for a request, before any backend has heard of it.

A tokenizer makes at most one token of a byte, after its normalizer has made one byte to several.
Decision 0008 has the reasons for the numbers.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import msgspec

from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT
from tollhouse.contract.chat import ChatRequest
from tollhouse.ledger.pricing import TokenBound
from tollhouse.ledger.prompts import Prompt, of_chat
from tollhouse.ledger.spelling import NESTING_OF_ARGUMENTS, growth_bytes

MESSAGE_TOKENS = 16
TOOLS_TOKENS = 256
"""How a template tells a model to call tools; once, if there are any."""
TOOL_TOKENS = 64


class TokenizerFamily(IntEnum):
    """How many bytes the normalizer of a tokenizer can make of one."""

    BYTES = 1
    NFC = 3
    NFKC = 11


TEMPLATE_TOKENS: Final = {
    TokenizerFamily.BYTES: 256,
    TokenizerFamily.NFC: 64,
    TokenizerFamily.NFKC: 64,
}
"""What a template of the family says of its own: a system prompt, a date, who speaks next.

A larger factor makes more of the JSON around each message, which no template prints, so that less
is needed beside it.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBounds:
    """What the catalog says about a model and its backend, as far as bounds depend on it.

    Without a tokenizer's family, or without `image_tokens` where there are images, a prompt may
    fill the whole context. Without `template_tokens` the family's number holds.
    """

    tokenizer: TokenizerFamily | None
    context_length: int
    max_output_length: int
    template_tokens: int | None = None
    image_tokens: int | None = None
    reasons_outside_bound: bool = False
    bills_prompt_per_choice: bool = False


def of_chat_request(request: ChatRequest, model: ModelBounds) -> TokenBound:
    """The bound for `n` choices together."""
    requested = request.max_completion_tokens or request.max_tokens
    budget = request.reasoning.max_tokens if request.reasoning else None
    output_tokens = output_tokens_max(requested or None, model) + _prediction_tokens(request, model)
    if model.reasons_outside_bound:
        output_tokens += budget or model.context_length
    return _bound(of_chat(request), model, output_tokens, request.n or 1)


def fits_context(bound: TokenBound, model: ModelBounds) -> bool:
    """Return whether prompt and answer certainly fit the model's context together."""
    return bound.prompt_tokens + bound.output_tokens <= model.context_length


def output_tokens_max(requested: int | None, model: ModelBounds) -> int:
    """The output bound that must be sent with the request, else the backend's own holds."""
    return min(requested or OUTPUT_TOKENS_DEFAULT, model.max_output_length, model.context_length)


def _bound(prompt: Prompt, model: ModelBounds, output_tokens: int, completions: int) -> TokenBound:
    prompts = completions if model.bills_prompt_per_choice else 1
    return TokenBound(
        prompt_tokens=_prompt_tokens(prompt, model) * prompts,
        images=prompt.images * prompts,
        output_tokens=output_tokens,
        completions=completions,
    )


def _prompt_tokens(prompt: Prompt, model: ModelBounds) -> int:
    image_tokens = model.image_tokens if prompt.images else 0
    if prompt.is_open or model.tokenizer is None or image_tokens is None:
        return model.context_length
    template_tokens = model.template_tokens
    if template_tokens is None:
        template_tokens = TEMPLATE_TOKENS[model.tokenizer]
    tokens = (
        template_tokens
        + MESSAGE_TOKENS * prompt.messages
        + (TOOLS_TOKENS if prompt.tools else 0)
        + TOOL_TOKENS * prompt.tools
        + image_tokens * prompt.images
        + model.tokenizer * _rendered_bytes(prompt, model.context_length)
    )
    return min(tokens, model.context_length)


def _rendered_bytes(prompt: Prompt, enough: int) -> int:
    """The most bytes that a template can print; from `enough` on, it is not looked closer."""
    pieces = [(text.encode(), NESTING_OF_ARGUMENTS) for text in prompt.arguments]
    if prompt.structures:
        pieces.append((_written(prompt.structures), 0))
    plain = len(_written(prompt.texts)) + sum(len(written) for written, _ in pieces)
    if plain >= enough:
        return plain
    return plain + sum(growth_bytes(written, nesting=nesting) for written, nesting in pieces)


def _written(value: list[Any]) -> bytes:
    """JSON is never shorter than the text in it."""
    return msgspec.json.encode(value)


def _prediction_tokens(request: ChatRequest, model: ModelBounds) -> int:
    """Predicted text that the answer does not use is billed as output, beside the bound."""
    if not request.prediction:
        return 0
    if model.tokenizer is None:
        return model.context_length
    return min(model.tokenizer * len(_written([request.prediction])), model.context_length)
