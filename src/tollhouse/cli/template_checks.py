"""Whether what is reserved for a small prompt covers what the engine counts for it."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from tollhouse.backends.errors import BackendError
from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.base.clock import SystemClock
from tollhouse.catalog.types import Backend, Catalog, Model
from tollhouse.cli.findings import Finding, ok, warning
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.inference.assembly import backend_config
from tollhouse.inference.offers import bounds_of
from tollhouse.inference.tightening import counting_body, engine_count
from tollhouse.ledger.bounds import of_chat_request

_SYSTEM: Final = ChatMessage(role="system", content="Hi")
_USER: Final = ChatMessage(role="user", content="Hi")
PROMPTS: Final = ([_USER], [_SYSTEM, _USER])
"""Some templates have a system prompt of their own, others add to the caller's."""
UNCOUNTED: Final = "not compared: the engine counts no whole chats"
REMEDY: Final = (
    "Set template_tokens = {tokens} for the model. Until then small requests hold too little, and "
    "you pay for the rest."
)


async def templates(catalog: Catalog) -> AsyncIterator[Finding]:
    """One for each model whose prompts are bounded by bytes and whose backend can count."""
    for model_id, model in catalog.models.items():
        backend = catalog.backends[model.backend]
        if model.tokenizer is not None and backend.counts_tokens_by != "none":
            yield await _template(model_id, model, backend)


async def _template(model_id: str, model: Model, backend: Backend) -> Finding:
    check = f"template of {model_id}"
    requests = [ChatRequest(model=model_id, messages=messages) for messages in PROMPTS]
    counted = await _counted(requests, model, backend)
    if not counted:
        return ok(check, UNCOUNTED)
    bounds = bounds_of(model, backend)
    reserved = [of_chat_request(request, bounds).prompt_tokens for request in requests]
    found = f"the engine counts {counted[0]} tokens for a word, and {reserved[0]} are reserved"
    if all(tokens <= bound for tokens, bound in zip(counted, reserved, strict=True)):
        return ok(check, found)
    return warning(check, found, REMEDY.format(tokens=max(counted)))


async def _counted(requests: list[ChatRequest], model: Model, backend: Backend) -> list[int]:
    """Return the count of each request, or nothing if the engine does not count all of them."""
    transport, counter = Transport(), backend.counts_tokens_by
    port = OpenAiBackend(backend_config(model.backend, backend), transport, SystemClock())
    counted: list[int] = []
    try:
        for request in requests:
            body = counting_body(request, model.upstream_model or request.model, counter)
            tokens = await engine_count(msgspec.json.encode(body), port, counter)
            if tokens is None:
                return []
            counted.append(tokens)
    except (BackendError, TimeoutError):
        return []
    finally:
        await transport.close()
    return counted
