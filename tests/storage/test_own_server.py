"""The gateway on a database server of the test's own: it may crash, and its plans can be read."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from tests.storage.cluster import Cluster, running_cluster
from tests.support.gateway import Gateway, run_jobs, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.settings import Settings
from tollhouse.storage import migrate

RECOVERY_SECONDS_MAX = 5.0
PROJECTS = "/manage/v1/organization/projects"
MANAGED_POLICIES = "/manage/v1/organization/policies"
SEQUENTIAL_SCAN = re.compile(r"Seq Scan on (\w+)")
INDEX_SCAN = re.compile(r"(?:Index|Index Only|Bitmap Index) Scan (?:Backward )?(?:using|on) (\w+)")

READ_WHOLE = {
    "instances",  # one row per worker
    # at most a handful
    "replica_orders",  # what operators left out by hand
    "schema_contracted",  # one row
    "schema_expanded",  # one row
}


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running_cluster() as running:
        await migrate.migrate(running.url)
        yield running


@pytest.fixture
def settings(cluster: Cluster) -> Settings:
    """In the place of the usual settings: everything else follows from them."""
    return settings_for(cluster.url)


class Clients:
    """Send requests without pause and note every answer with its time."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self.answers: list[tuple[float, httpx2.Response]] = []
        self.created: set[str] = set()
        self._running = [asyncio.create_task(self._send(number)) for number in range(4)]

    async def _send(self, number: int) -> None:
        for turn in range(1_000_000):
            if number % 2:
                answer = await self._client.get(PROJECTS)
            else:
                headers = {"Idempotency-Key": f"creation {number} {turn}"}
                answer = await self._client.post(PROJECTS, json={"name": "x"}, headers=headers)
                if answer.is_success:
                    self.created.add(answer.json()["id"])
            self.answers.append((self._loop.time(), answer))

    async def until(self, status: int, *, after: float) -> float:
        """Wait for an answer of this status; when it came."""
        async with asyncio.timeout(120):
            while True:
                for at, answer in self.answers:
                    if at > after and answer.status_code == status:
                        return at
                await asyncio.sleep(0.01)

    @property
    def refusals(self) -> list[tuple[float, httpx2.Response]]:
        return [(at, answer) for at, answer in self.answers if answer.status_code == 503]

    async def stop(self) -> Counter[int]:
        """How often each status was answered."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        return Counter(answer.status_code for _, answer in self.answers)


@pytest.mark.nightly
@pytest.mark.guarantee("T42")
@pytest.mark.clock
async def test_a_crash_of_the_database_is_503_and_forgotten_5_seconds_after_its_return(
    gateway: Gateway, org: OrganizationFixture, cluster: Cluster
) -> None:
    loop = asyncio.get_running_loop()
    admin = await org.admin_key()
    async with gateway.client(admin.value) as client:
        clients = Clients(client)
        await clients.until(200, after=loop.time())

        await cluster.kill()
        await clients.until(503, after=loop.time())
        await cluster.start()
        returned_at = loop.time()
        served_at = await clients.until(200, after=returned_at)
        await clients.until(200, after=served_at + 1)
        statuses = await clients.stop()
        stored = {project["id"] async for project in every_project(client)}

    assert set(statuses) == {200, 503}
    assert served_at - returned_at < RECOVERY_SECONDS_MAX
    assert max(at for at, _ in clients.refusals) - returned_at < RECOVERY_SECONDS_MAX
    refusals = [answer for _, answer in clients.refusals]
    assert {answer.headers["retry-after"] for answer in refusals} == {"1"}
    assert {answer.json()["error"]["code"] for answer in refusals} == {"service_unavailable"}
    assert clients.created <= stored


async def every_project(client: httpx2.AsyncClient) -> AsyncIterator[dict[str, str]]:
    after: dict[str, str] = {}
    while True:
        page = (await client.get(PROJECTS, params={"limit": "100", **after})).json()
        for project in page["data"]:
            yield project
        if not page["has_more"]:
            return
        after = {"after": page["last_id"]}


async def test_every_statement_reads_by_an_index_also_on_empty_tables(
    gateway: Gateway, cluster: Cluster, settings: Settings
) -> None:
    database = await connect(settings)
    org = await new_organization_fixture(database)
    admin = await org.admin_key()
    async with gateway.client(admin.value) as client:
        await use_everything(client)
    await run_jobs(
        gateway.application, "purge", "key-secrets", "activity-retention", "decision-retention"
    )
    await database.close()

    plans = [line for line in lines_of_the_gateway(cluster.log()) if "Scan" in line]
    sequential = {match[1] for line in plans if (match := SEQUENTIAL_SCAN.search(line))}
    indexes = {match[1] for line in plans if (match := INDEX_SCAN.search(line))}

    assert sequential <= READ_WHOLE
    assert indexes >= {
        "projects_pkey",
        "project_keys_pkey",
        "project_keys_of_project",
        "admin_keys_pkey",
        "organizations_pkey",
        "key_directory_pkey",
        "key_directory_of_key",
        "idempotency_records_pkey",
        "idempotency_records_sealed",
        "idempotency_records_by_age",
        "data_keys_pkey",
        "audit_log_pkey",
        "policies_pkey",
        "policy_versions_pkey",
        "rate_limits_pkey",
        "request_hours_pkey",
        "request_hours_by_day",
    }


def lines_of_the_gateway(log: str) -> Iterator[str]:
    """Each entry begins with the name of whose it is; what belongs to it is indented."""
    is_ours = False
    for line in log.splitlines():
        if not line.startswith("\t"):
            is_ours = line.startswith("tollhouse ")
        if is_ours:
            yield line


async def use_everything(client: httpx2.AsyncClient) -> None:
    """Each operation that reads or writes the database, once."""
    project = await create(client, PROJECTS, {"name": "x"})
    await create(client, PROJECTS, {"name": "x"})
    project_path = f"{PROJECTS}/{project}"
    keys = f"/v1/organization/projects/{project}/api_keys"
    key = await create(client, keys, {"name": "x"})
    await create(client, f"{project_path}/api_keys/{key}/rotate", {"overlap_seconds": 0})
    admin = await create(client, "/manage/v1/organization/admin_api_keys", {"name": "x"})
    for path in (
        PROJECTS,
        f"{PROJECTS}?after={project}",
        project_path,
        f"{project_path}/api_keys",
        f"{project_path}/api_keys?after={key}",
        f"{project_path}/api_keys/{key}",
        "/v1/organization/admin_api_keys",
        f"/v1/organization/admin_api_keys?after={admin}",
        f"/v1/organization/admin_api_keys?after={admin}&order=desc",
        "/manage/v1/organization/audit",
    ):
        assert (await client.get(path)).status_code == 200, path
    for verb in ("suspend", "resume", "revoke"):
        answer = await client.post(f"{project_path}/api_keys/{key}/{verb}")
        assert answer.status_code == 200, verb
    await use_policies(client, project)
    await use_money(client, project)
    await use_limits(client, project, key)
    await use_activity(client)
    renamed = await client.patch(project_path, json={"name": "y"})
    archived = await client.post(f"/v1/organization/projects/{project}/archive")
    revoked = await client.delete(f"/v1/organization/admin_api_keys/{admin}")
    assert [renamed.status_code, archived.status_code, revoked.status_code] == [200, 200, 200]


async def use_policies(client: httpx2.AsyncClient, project: str) -> None:
    """A policy's whole life, and every way to look at it."""
    body: dict[str, object] = {"name": "x", "rule": "Is it so?", "scope": "projects"}
    body["project_ids"] = [project]
    policy = await create(client, "/v1/organization/policies", body)
    given, managed = f"/v1/organization/policies/{policy}", f"{MANAGED_POLICIES}/{policy}"
    changes: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("PATCH", given, {"rule": "Is it?"}),
        ("POST", f"{managed}/publish", {}),
        ("POST", f"{managed}/publish", {}),
        ("POST", f"{managed}/rollback", {"version": 1}),
        ("POST", f"{given}/pause", {}),
        ("POST", f"{managed}/resume", {}),
    )
    for revision, (method, path, change) in enumerate(changes, start=1):
        answer = await client.request(method, path, json={"revision": revision, **change})
        assert answer.status_code == 200, answer.text
    for path in (
        given,
        f"/v1/organization/projects/{project}/effective_policies",
        MANAGED_POLICIES,
        f"{MANAGED_POLICIES}?after={policy}",
        f"{managed}/versions",
        f"{managed}/versions/1",
    ):
        assert (await client.get(path)).status_code == 200, path


async def use_money(client: httpx2.AsyncClient, project: str) -> None:
    """Caps, credit and reports; what a report cuts is read from the entries."""
    limits = "/manage/v1/organization/spending_limits"
    for place in ({}, {"project_id": project}):
        limit = {"period": "month", "limit": {"value": "1"}, **place}
        assert (await client.put(limits, json=limit)).status_code == 200
    for path in (
        limits,
        "/manage/v1/organization/credits",
        "/manage/v1/organization/credits/entries",
        "/v1/organization/costs?start_time=1700000001&group_by=project_id&group_by=line_item",
        "/manage/v1/organization/usage?start_time=1700000001&bucket_width=1h",
    ):
        assert (await client.get(path)).status_code == 200, path
    assert (await client.delete(f"{limits}?period=month")).status_code == 200


async def use_limits(client: httpx2.AsyncClient, project: str, key: str) -> None:
    """Rate limits of every scope."""
    limits = "/manage/v1/organization/rate_limits"
    for place in ({}, {"project_id": project}, {"api_key_id": key}):
        limit = {"requests_per_minute": 1, **place}
        assert (await client.put(limits, json=limit)).status_code == 200
    for path in (limits, f"{limits}?after=project:{project}:organization"):
        assert (await client.get(path)).status_code == 200, path
    assert (await client.delete(f"{limits}?api_key_id={key}")).status_code == 200


async def use_activity(client: httpx2.AsyncClient) -> None:
    """Every way to look for requests."""
    for path in (
        "requests",
        "requests?status=5xx",
        "requests?model=m",
        "request_rollups?start_time=0&end_time=1&group_by=model",
    ):
        assert (await client.get(f"/manage/v1/organization/{path}")).status_code == 200, path


async def create(client: httpx2.AsyncClient, path: str, body: dict[str, object]) -> str:
    answer = await client.post(path, json=body, headers={"Idempotency-Key": f"key for {path}"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])
