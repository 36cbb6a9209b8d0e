"""An organization with a past behind a real gateway, and its reports as a client reads them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import httpx2

from tests.reports.brute_force import Asked, Entries, Lines
from tests.reports.events import Keys
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.money import PICO_USD_PER_USD

COSTS = "/v1/organization/costs"
USAGE = "/manage/v1/organization/usage"
UNSETTLED = "x-tollhouse-unsettled-requests"
PROJECTS = 3
KEYS_PER_PROJECT = 3


@dataclass(frozen=True)
class Past:
    org: OrganizationFixture
    keys: Keys
    client: httpx2.AsyncClient
    connection: asyncpg.Connection

    @property
    def organization_id(self) -> UUID:
        return self.org.organization_id

    async def entries(self) -> Entries:
        return await Entries.read(self.connection, self.organization_id)

    async def pages(self, path: str, asked: Asked, *, limit: int = 180) -> list[dict[str, Any]]:
        """All pages, one after the other."""
        found: list[dict[str, Any]] = []
        parameters = [*asked.parameters(), ("limit", str(limit))]
        while True:
            answer = await self.client.get(path, params=parameters)
            assert answer.status_code == 200, answer.text
            found.append(answer.json())
            if not found[-1]["has_more"]:
                assert found[-1]["next_page"] is None
                return found
            cursor = ("page", found[-1]["next_page"])
            parameters = [*(pair for pair in parameters if pair[0] != "page"), cursor]

    async def costs(self, asked: Asked, *, limit: int = 180) -> dict[int, Lines]:
        """In the form that brute force has."""
        return _by_bucket(await self.pages(COSTS, asked, limit=limit), _cost_line)

    async def usage(self, asked: Asked, *, limit: int = 180) -> dict[int, Lines]:
        return _by_bucket(await self.pages(USAGE, asked, limit=limit), _usage_line)


@asynccontextmanager
async def opened(
    org: OrganizationFixture, gateway: Gateway, connection: asyncpg.Connection
) -> AsyncGenerator[Past]:
    """An organization with three projects of three keys each, and nothing used yet."""
    project_ids: list[UUID] = []
    api_key_ids: list[UUID] = []
    for _ in range(PROJECTS):
        project = await org.project()
        for _ in range(KEYS_PER_PROJECT):
            project_ids.append(project.id)
            api_key_ids.append((await org.project_key(project)).key.id)
    async with gateway.client((await org.admin_key()).value) as client:
        yield Past(org, Keys(project_ids, api_key_ids), client, connection)


def pico(value: str) -> int:
    """From the wire's decimal, without a float."""
    whole, _, fraction = value.partition(".")
    return int(whole) * PICO_USD_PER_USD + int(fraction.ljust(12, "0"))


def _by_bucket(pages: list[dict[str, Any]], line: Any) -> dict[int, Lines]:  # noqa: ANN401 - a function
    found: dict[int, Lines] = {}
    for bucket in (bucket for page in pages for bucket in page["data"]):
        lines = [line(result) for result in bucket["results"]]
        assert lines == sorted(lines), "sorted by the grouped fields"
        assert bucket["start_time"] not in found, "every bucket stands once"
        found[bucket["start_time"]] = dict(lines)
        assert len(lines) == len(found[bucket["start_time"]]), "every group stands once"
    assert list(found) == sorted(found)
    return found


def _cost_line(result: dict[str, Any]) -> tuple[tuple[str, str, str], int]:
    group = (result["project_id"], result["api_key_id"], result["line_item"])
    return _named(group), pico(result["amount"]["value"])


def _usage_line(result: dict[str, Any]) -> tuple[tuple[str, str, str], tuple[int, ...]]:
    tokens = ("input_tokens", "cached_input_tokens", "output_tokens")
    names = ("requests", "estimated_requests", *tokens, "images", "cache_write_tokens")
    group = (result["project_id"], result["api_key_id"], result["model"])
    return _named(group), tuple(result[name] for name in names)


def _named(group: tuple[str | None, ...]) -> tuple[str, str, str]:
    first, second, third = (name or "" for name in group)
    return first, second, third
