"""Counting the tokens of an input without generating: by the engine, its tokenizer, or a guess.

Counting is free, so nothing is reserved; only how many bytes an organization has counted in a
minute is bounded, also for a key without credit. Where an enforcing policy would have to judge a
request first, its content goes to no backend in any form, and the count is a guess. Where one would
have to judge the answer, a backend's refusal is passed on without the backend's words.
"""

import logging
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.backends.types import Ask
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.messages import BETA_HEADER, CountTokens, TokenCount
from tollhouse.inference.calls import busy
from tollhouse.inference.courtroom import Applied
from tollhouse.inference.message_blocks import forwarded_input
from tollhouse.inference.offers import Offer, Offers
from tollhouse.inference.policing import Policing
from tollhouse.inference.text_tokens import tokens_of
from tollhouse.keys.types import Customer
from tollhouse.policies.types import Direction, Mode

logger = logging.getLogger("tollhouse.inference")

MESSAGE_TOKENS = 4
"""What a template adds to each message, about."""
IMAGE_TOKENS = 1_000
"""For a picture whose size nobody declared."""
_COUNTER = "/messages/count_tokens"
_TOKENIZER = "/tokenize"


class _Tokenized(Struct, frozen=True):
    """What tokenizers of engines answer; llama.cpp and vLLM agree on this much."""

    tokens: list[int]


class TokenCounter:
    """One per worker."""

    def __init__(self, offers: Offers, policing: Policing) -> None:
        self._offers = offers
        self._policing = policing

    async def count(
        self,
        customer: Customer,
        body: CountTokens,
        *,
        size_bytes: int,
        flags: frozenset[str],
        charge: Callable[[float], None],
    ) -> int:
        """The number of input tokens, as well as it can be known. `size_bytes` is the body's.

        `charge` is told for how many seconds the event loop was busy.
        """
        offer = self._offers.find(body.model, customer)
        refuse_unknown_flags(flags, offer.model.beta_flags, body.model)
        self._offers.take_counted_bytes(customer.organization_id, size_bytes)
        with busy(charge):
            forwarded = forwarded_input(body, fetches_images=offer.backend.fetches_images_safely)
        if forwarded is None or offer.backend.counts_tokens_by == "none":
            return self._estimate(body, offer)
        applied = await self._applied(customer)
        if applied is not None and applied.of(Direction.REQUEST, Mode.ENFORCING):
            return self._estimate(body, offer)
        try:
            return await _counted(forwarded, offer)
        except BackendRejected as refusal:
            if applied is not None and applied.of(Direction.RESPONSE, Mode.ENFORCING):
                raise refusal.without_words() from None
            raise
        except BackendError as failure:
            # The contract allows a guess when the engine cannot be asked; the log tells.
            logger.warning("tokens_estimated", extra={"reason": failure.code})
            return self._estimate(body, offer)

    async def _applied(self, customer: Customer) -> Applied | None:
        return await self._policing.applied(
            customer.organization_id,
            customer.project_id,
            policy_version=customer.policy_version,
            selected=(),
        )

    def _estimate(self, body: CountTokens, offer: Offer) -> int:
        return estimate(body, image_tokens=offer.model.image_tokens or IMAGE_TOKENS)


def refuse_unknown_flags(flags: frozenset[str], known: frozenset[str], model: str) -> None:
    """A flag that the model does not have would be dropped in silence (OQ-69)."""
    for flag in sorted(flags - known):
        message = (
            f"Invalid '{BETA_HEADER}': the model '{model}' does not support '{flag}'. Leave it out."
        )
        raise InvalidRequest("invalid_value", message, param=BETA_HEADER)


def estimate(body: CountTokens, *, image_tokens: int) -> int:
    """From the length of all text that a template could show, without the data of pictures."""
    images: list[FreeObject] = []
    shown = [_without_images(body.messages, images), body.system, body.tools, body.tool_choice]
    characters = sum(len(msgspec.json.encode(part)) for part in shown if part)
    return tokens_of(characters) + MESSAGE_TOKENS * len(body.messages) + image_tokens * len(images)


def _without_images(messages: list[FreeObject], images: list[FreeObject]) -> list[FreeObject]:
    """Pictures stand in lists of parts, also in the results of tools; they are set aside."""
    kept: list[FreeObject] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            texts = _text_parts(cast("list[Any]", content), images)
            kept.append(message | {"content": texts})
        else:
            kept.append(message)
    return kept


def _text_parts(parts: list[Any], images: list[FreeObject]) -> list[Any]:
    kept: list[Any] = []
    for part in parts:
        known = cast("FreeObject", part) if isinstance(part, dict) else {}
        inner = known.get("content")
        if known.get("type") == "image":
            images.append(known)
        elif isinstance(inner, list):
            kept.append(known | {"content": _text_parts(cast("list[Any]", inner), images)})
        else:
            kept.append(part)
    return kept


async def _counted(body: CountTokens, offer: Offer) -> int:
    """An engine's own counter takes the whole input; a tokenizer takes text, by two names."""
    if offer.backend.counts_tokens_by == "messages":
        renamed = msgspec.structs.replace(body, model=offer.upstream_model)
        ask = Ask(path=_COUNTER, body=msgspec.json.encode(renamed))
        counted, _ = await offer.port.fetch(ask, TokenCount)
        return counted.input_tokens
    text = msgspec.json.encode([body.system or "", body.messages, body.tools or []]).decode()
    asked = {"model": offer.upstream_model, "prompt": text, "content": text}
    ask = Ask(path=_TOKENIZER, body=msgspec.json.encode(asked), is_at_host=True)
    tokenized, _ = await offer.port.fetch(ask, _Tokenized)
    return len(tokenized.tokens)
