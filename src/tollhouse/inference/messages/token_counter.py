"""Count the tokens of an input: by the engine, by its tokenizer, or by an estimate.

Counting is free, so no credit is held; only the bytes that an organization has counted in a minute
are bounded. If an enforcing policy must evaluate the request first, its content goes to no backend
and the count is an estimate. If a policy must evaluate the answer, a backend's refusal is passed on
without the backend's text.
"""

import logging
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec import Struct

from tollhouse.backends.errors import BackendError, BackendRejected
from tollhouse.backends.types import UpstreamRequest
from tollhouse.base.errors import InvalidRequest
from tollhouse.base.policies import Direction, Mode
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.messages import BETA_HEADER, CountTokens, TokenCount
from tollhouse.evaluation import AppliedPolicies, PolicyResolver
from tollhouse.inference.messages.blocks import forwarded_input
from tollhouse.inference.meter import tokens_of
from tollhouse.inference.model_resolver import ModelResolver, ResolvedModel
from tollhouse.inference.prepared_request import charge_cpu_time
from tollhouse.keys.types import Customer

logger = logging.getLogger("tollhouse.inference")

MESSAGE_TOKENS = 4
"""The approximate tokens that a template adds to each message."""
IMAGE_TOKENS = 1_000
"""The tokens of an image for a model that declares none."""
_COUNTER = "/messages/count_tokens"
_TOKENIZER = "/tokenize"


class _TokenizedPrompt(Struct, frozen=True):
    """The answer of an engine's tokenizer: the part that llama.cpp and vLLM have in common."""

    tokens: list[int]


class CountedTokens(Struct, frozen=True):
    """A number of input tokens, and whether it is an estimate."""

    tokens: int
    is_estimated: bool


class TokenCounter:
    """Counts tokens for `count_tokens`. One per worker."""

    def __init__(self, model_resolver: ModelResolver, policing: PolicyResolver) -> None:
        self._model_resolver = model_resolver
        self._policing = policing

    async def count(
        self,
        customer: Customer,
        body: CountTokens,
        *,
        size_bytes: int,
        flags: frozenset[str],
        charge: Callable[[float], None],
    ) -> CountedTokens:
        """Return the number of input tokens. `size_bytes` is the size of the body.

        `charge` receives the CPU seconds that the request took.
        """
        resolved = self._model_resolver.find(body.model, customer)
        refuse_unknown_flags(flags, resolved.model.beta_flags, body.model)
        self._model_resolver.take_counted_bytes(customer.organization_id, size_bytes)
        forwarded = charge_cpu_time(
            charge,
            forwarded_input,
            body,
            fetches_images=resolved.backend.fetches_images_safely,
        )
        if forwarded is None or resolved.backend.counts_tokens_by == "none":
            return self._estimate(body, resolved)
        applied = await self._applied(customer)
        if applied is not None and applied.matching(Direction.REQUEST, Mode.ENFORCING):
            return self._estimate(body, resolved)
        try:
            return CountedTokens(await _counted(forwarded, resolved), is_estimated=False)
        except BackendRejected as refusal:
            if applied is not None and applied.matching(Direction.RESPONSE, Mode.ENFORCING):
                raise refusal.without_words() from None
            raise
        except BackendError as failure:
            # The contract allows a guess when the engine cannot be asked; the log tells.
            logger.warning("tokens_estimated", extra={"reason": failure.code})
            return self._estimate(body, resolved)

    async def _applied(self, customer: Customer) -> AppliedPolicies | None:
        return await self._policing.applied(
            customer.organization_id,
            customer.project_id,
            policy_version=customer.policy_version,
            selected=(),
        )

    def _estimate(self, body: CountTokens, resolved: ResolvedModel) -> CountedTokens:
        model = resolved.model
        template_tokens = MESSAGE_TOKENS if model.template_tokens is None else model.template_tokens
        tokens = estimate(
            body,
            template_tokens=template_tokens,
            image_tokens=model.image_tokens or IMAGE_TOKENS,
        )
        return CountedTokens(tokens, is_estimated=True)


def refuse_unknown_flags(flags: frozenset[str], known: frozenset[str], model: str) -> None:
    """Raise for a beta flag that the model does not declare (OQ-69)."""
    for flag in sorted(flags - known):
        message = (
            f"Invalid '{BETA_HEADER}': the model '{model}' does not support '{flag}'. Leave it out."
        )
        raise InvalidRequest("invalid_value", message, param=BETA_HEADER)


def estimate(body: CountTokens, *, template_tokens: int, image_tokens: int) -> int:
    """Estimate from the length of all text that a template can show, without image data.

    `template_tokens` is what the template adds to a request with one message, as in its bound.
    """
    images: list[FreeObject] = []
    shown = [_without_images(body.messages, images), body.system, body.tools, body.tool_choice]
    characters = sum(len(msgspec.json.encode(part)) for part in shown if part)
    added = template_tokens + MESSAGE_TOKENS * (len(body.messages) - 1)
    return tokens_of(characters) + added + image_tokens * len(images)


def _without_images(messages: list[FreeObject], images: list[FreeObject]) -> list[FreeObject]:
    """Return the input without images, and collect those in `images`."""
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


async def _counted(body: CountTokens, resolved: ResolvedModel) -> int:
    """Ask the engine: its counter takes the whole input, its tokenizer takes text."""
    if resolved.backend.counts_tokens_by == "messages":
        renamed = msgspec.structs.replace(body, model=resolved.upstream_model)
        ask = UpstreamRequest(path=_COUNTER, body=msgspec.json.encode(renamed))
        counted, _ = await resolved.port.fetch(ask, TokenCount)
        return counted.input_tokens
    text = msgspec.json.encode([body.system or "", body.messages, body.tools or []]).decode()
    asked = {"model": resolved.upstream_model, "prompt": text, "content": text}
    ask = UpstreamRequest(path=_TOKENIZER, body=msgspec.json.encode(asked), is_at_host=True)
    tokenized, _ = await resolved.port.fetch(ask, _TokenizedPrompt)
    return len(tokenized.tokens)
