"""Checks of the catalog: its replicas, the chat templates of its models, and the judge."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from tollhouse.backends.errors import BackendError
from tollhouse.backends.health import credential_headers, probe
from tollhouse.base.clock import SystemClock
from tollhouse.base.findings import Finding, failure, ok, warning
from tollhouse.catalog import rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend, Catalog, Model
from tollhouse.cli.doctor import judge
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.inference.assembly import backend_port
from tollhouse.inference.exact_bound import counting_body, engine_count
from tollhouse.inference.model_resolver import bounds_of
from tollhouse.ledger.bounds import of_chat_request
from tollhouse.settings import Settings

ANSWER_SECONDS: Final = 5.0
CONCURRENT_PROBES_MAX: Final = 50
SHOWN_MAX: Final = 5
REMEDY: Final = (
    "Check the engine at that address, or correct replicas, health_path, ca_file or the credential."
)

_SYSTEM: Final = ChatMessage(role="system", content="Hi")
_USER: Final = ChatMessage(role="user", content="Hi")
PROMPTS: Final = ([_USER], [_SYSTEM, _USER])
"""Some templates add their own system prompt, others extend the caller's."""
UNCOUNTED: Final = "not compared: the engine does not count tokens of chats"
TEMPLATE_REMEDY: Final = (
    "Set template_tokens = {tokens} for the model. Until then too little credit is held for small "
    "requests, and you pay the difference."
)


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    """Check the catalog, and if it is valid every backend, template and the judge."""
    try:
        catalog = rules.parse(settings.backends, settings.models, settings.judge)
    except InvalidCatalog as error:
        remedy = "Correct the file. No worker starts with it; a reload keeps the last valid one."
        yield failure("catalog", str(error), remedy)
        return
    yield ok("catalog", f"models: {len(catalog.models)}, backends: {len(catalog.backends)}")
    async for finding in _backends(catalog):
        yield finding
    async for finding in _templates(catalog):
        yield finding
    yield await judge.judge(catalog)


async def _backends(catalog: Catalog) -> AsyncIterator[Finding]:
    slots = asyncio.Semaphore(CONCURRENT_PROBES_MAX)
    for name, backend in catalog.backends.items():
        faults = await asyncio.gather(*(_fault(backend, url, slots) for url in backend.replicas))
        yield replicas_finding(f"backend {name}", backend.replicas, faults)


async def _fault(backend: Backend, url: str, slots: asyncio.Semaphore) -> str | None:
    async with slots:
        headers = credential_headers(backend.dialect, backend.api_key)
        return await probe(
            url,
            backend.health_path,
            headers=headers,
            seconds=ANSWER_SECONDS,
            ca_certificates=backend.ca_certificates,
        )


def replicas_finding(check: str, urls: tuple[str, ...], faults: list[str | None]) -> Finding:
    """Return a failure if no replica answers, a warning if some do not."""
    wrong = [f"{url} {fault}" for url, fault in zip(urls, faults, strict=True) if fault]
    found = f"{len(urls) - len(wrong)} of {len(urls)} replicas answer"
    if not wrong:
        return ok(check, found)
    shown = "; ".join(wrong[:SHOWN_MAX])
    rest = f"; and {len(wrong) - SHOWN_MAX} more" if len(wrong) > SHOWN_MAX else ""
    finding = failure if len(wrong) == len(urls) else warning
    return finding(check, f"{found}: {shown}{rest}", REMEDY)


async def _templates(catalog: Catalog) -> AsyncIterator[Finding]:
    """Compare the reserved tokens with the engine's count, for every model that allows it."""
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
    found = f"the engine counts {counted[0]} tokens for one word, and {reserved[0]} are reserved"
    if all(tokens <= bound for tokens, bound in zip(counted, reserved, strict=True)):
        return ok(check, found)
    return warning(check, found, TEMPLATE_REMEDY.format(tokens=max(counted)))


async def _counted(requests: list[ChatRequest], model: Model, backend: Backend) -> list[int]:
    """Return the engine's count of each request, or an empty list if it cannot count all."""
    port, counter = backend_port(model.backend, backend, SystemClock()), backend.counts_tokens_by
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
        await port.close()
    return counted
