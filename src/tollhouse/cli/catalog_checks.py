"""Checks of the catalog, and of every replica in it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from tollhouse.backends.probing import probe
from tollhouse.catalog import rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend, Catalog
from tollhouse.cli import judge_checks, template_checks
from tollhouse.cli.findings import Finding, failure, ok, warning
from tollhouse.settings import Settings

ANSWER_SECONDS: Final = 5.0
PROBES_MAX: Final = 50
"""At once."""
SHOWN_MAX: Final = 5
REMEDY: Final = "Look at the engine there, or correct replicas, health_path or credential."


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    """One for the catalog; if it is sound, one for each backend, template and for the judge."""
    try:
        catalog = rules.parse(settings.backends, settings.models, settings.judge)
    except InvalidCatalog as error:
        remedy = "Correct the file. No worker starts with it, and a reload keeps the last good one."
        yield failure("catalog", str(error), remedy)
        return
    yield ok("catalog", f"models: {len(catalog.models)}, backends: {len(catalog.backends)}")
    async for finding in _backends(catalog):
        yield finding
    async for finding in template_checks.templates(catalog):
        yield finding
    yield await judge_checks.judge(catalog)


async def _backends(catalog: Catalog) -> AsyncIterator[Finding]:
    turns = asyncio.Semaphore(PROBES_MAX)
    for name, backend in catalog.backends.items():
        faults = await asyncio.gather(*(_fault(backend, url, turns) for url in backend.replicas))
        yield judge_replicas(f"backend {name}", backend.replicas, faults)


async def _fault(backend: Backend, url: str, turns: asyncio.Semaphore) -> str | None:
    async with turns:
        return await probe(
            url, backend.health_path, api_key=backend.api_key, seconds=ANSWER_SECONDS
        )


def judge_replicas(check: str, urls: tuple[str, ...], faults: list[str | None]) -> Finding:
    """One that answers keeps the backend's models ready; with none they are not."""
    wrong = [f"{url} {fault}" for url, fault in zip(urls, faults, strict=True) if fault]
    found = f"{len(urls) - len(wrong)} of {len(urls)} replicas answer"
    if not wrong:
        return ok(check, found)
    shown = "; ".join(wrong[:SHOWN_MAX])
    rest = f"; and {len(wrong) - SHOWN_MAX} more" if len(wrong) > SHOWN_MAX else ""
    say = failure if len(wrong) == len(urls) else warning
    return say(check, f"{found}: {shown}{rest}", REMEDY)
