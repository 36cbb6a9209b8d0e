"""The one order of checks: of two faults in a request, the earlier one is told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio

from tests.api.test_edge_envelope import refusal
from tests.support.gateway import Gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "gateway", "org"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY_BYTES_MAX = 1024
UNKNOWN_PATH = f"/v1/organization/projects/{UUID(int=0)}/api_keys"


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return settings_for(database_url, body_bytes_max=BODY_BYTES_MAX)


@dataclass(frozen=True)
class Request:
    """A creation of a project key, until somebody spoils it."""

    path: str
    key: str
    method: str = "POST"
    host: str = "gateway.example"
    content_type: str = "application/json"
    creation_key: str = "creation-1"
    body: bytes = b'{"name":"x"}'

    async def send(self, client: httpx2.AsyncClient) -> httpx2.Response:
        headers = {
            "Host": self.host,
            "Authorization": self.key,
            "Content-Type": self.content_type,
            "Idempotency-Key": self.creation_key,
        }
        sent = {name: value for name, value in headers.items() if value}
        return await client.request(self.method, self.path, content=self.body, headers=sent)


@dataclass(frozen=True)
class Stage:
    """Keys and paths that exist in the gateway under test."""

    path: str
    key: str
    powerless_key: str
    archived_path: str


Spoil = Callable[[Request, Stage], Request]
"""Adds one fault, and leaves what else is wrong."""

FAULTS: dict[str, Spoil] = {
    "unknown path": lambda request, _: replace(request, path="/nowhere"),
    "unknown method": lambda request, _: replace(request, method="PUT"),
    "malformed host": lambda request, _: replace(request, host="a/b"),
    "no key": lambda request, _: replace(request, key=""),
    "powerless key": lambda request, stage: replace(request, key=f"Bearer {stage.powerless_key}"),
    "other media": lambda request, _: replace(request, content_type="text/plain"),
    "too large": lambda request, _: replace(request, body=request.body.ljust(BODY_BYTES_MAX + 1)),
    "not JSON": lambda request, _: replace(request, body=b"{" + request.body),
    "not the schema": lambda request, _: replace(
        request, body=request.body.replace(b"name", b"nome")
    ),
    "no creation key": lambda request, _: replace(request, creation_key=""),
    "unknown resource": lambda request, _: replace(request, path=UNKNOWN_PATH),
    "archived resource": lambda request, stage: replace(request, path=stage.archived_path),
}
ORDER = {
    "unknown path": (404, "unknown_url"),
    "unknown method": (405, "method_not_allowed"),
    "malformed host": (400, "malformed_request"),
    "no key": (401, "missing_api_key"),
    "powerless key": (403, "insufficient_permissions"),
    "other media": (415, "unsupported_media_type"),
    "too large": (413, "request_too_large"),
    "not JSON": (400, "invalid_json"),
    "not the schema": (400, "unknown_parameter"),
    "no creation key": (400, "missing_required_parameter"),
    "unknown resource": (404, "project_not_found"),
    "archived resource": (409, "project_archived"),
}
"""Each fault and how it is told, earlier checks first."""

EXCLUSIVE = (
    {"unknown path", "unknown resource"},
    {"unknown path", "archived resource"},
    {"unknown resource", "archived resource"},
    {"no key", "powerless key"},
)
"""Both are about the same part of the request."""


@pytest_asyncio.fixture(loop_scope="module")
async def stage(org: OrganizationFixture) -> Stage:
    project, archived = await org.project(), await org.project()
    await org.archive(archived)
    return Stage(
        path=f"/v1/organization/projects/{project.id}/api_keys",
        key=(await org.admin_key()).value,
        powerless_key=(await org.admin_key(("audit:read",))).value,
        archived_path=f"/v1/organization/projects/{archived.id}/api_keys",
    )


def spoilt(stage: Stage, *faults: str) -> Request:
    request = Request(path=stage.path, key=f"Bearer {stage.key}")
    for fault in faults:
        request = FAULTS[fault](request, stage)
    return request


async def test_without_a_fault_the_request_is_served(gateway: Gateway, stage: Stage) -> None:
    async with gateway.client() as client:
        answer = await spoilt(stage).send(client)

    assert answer.status_code == 200


async def test_each_fault_alone_is_told(gateway: Gateway, stage: Stage) -> None:
    async with gateway.client() as client:
        answers = await asyncio.gather(*(spoilt(stage, fault).send(client) for fault in ORDER))

    assert dict(zip(ORDER, map(refusal, answers), strict=True)) == ORDER


async def test_of_two_faults_the_earlier_one_is_told(gateway: Gateway, stage: Stage) -> None:
    pairs = [pair for pair in combinations(ORDER, 2) if set(pair) not in EXCLUSIVE]

    async with gateway.client() as client:
        # What comes later in the order is spoilt first, so that it cannot undo the earlier.
        sending = (spoilt(stage, late, early).send(client) for early, late in pairs)
        answers = await asyncio.gather(*sending)

    told = dict(zip(pairs, map(refusal, answers), strict=True))
    assert told == {pair: ORDER[pair[0]] for pair in pairs}
    assert len(pairs) == 62
