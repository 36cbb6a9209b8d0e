"""The guide to backup and restore, as it stands, on a server whose callers spend until the end."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from tests.cli.commands import Operator, environment, free_port, install
from tests.cli.documents import read, scripts
from tests.hostile.customers import Customer, new_customer
from tests.identity.waiting import until
from tests.storage.cluster import DEBIAN_PROGRAMS, SERVER_ACCOUNT, Cluster, running_cluster
from tests.support.deployment import TAKES, model
from tests.support.gateway import settings_for
from tests.support.processes import Service, running_service
from tests.support.upstream import upstream_process
from tests.upgrades.rotation import Rotation, calling
from tollhouse.app import connect
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.settings import Settings
from tollhouse.storage import migrate

pytestmark = pytest.mark.nightly

REQUESTS = int(os.environ.get("TOLLHOUSE_RESTORE_REQUESTS", "5"))
"""How many requests each customer makes before and after the restored moment."""
MODEL = "example/model-a"
ARCHIVE, BASE, SWITCH, RESTORE, VERIFY = scripts(read("docs/guides/restore.md"))

LATE_KEY = {"idempotency-key": "a-late-key"}

_CHARGES = """
    SELECT reservation_id::text AS id, posted_pico
      FROM ledger_entries
     WHERE organization_id = $1 AND phase = 1 AND posted_pico > 0
"""


@dataclass(frozen=True, kw_only=True)
class Drill:
    """A server with an archive, and the directories that the guide names."""

    cluster: Cluster
    variables: dict[str, str]

    async def run(self, script: str) -> str:
        """Run a block of the guide as the account of the server."""
        account = ("runuser", "-u", SERVER_ACCOUNT, "--") if os.geteuid() == 0 else ()
        process = await asyncio.create_subprocess_exec(
            *(*account, "bash", "-eu", "-c", script),
            cwd="/",
            env=self.variables,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
        assert process.returncode == 0, (script, stderr.decode(), self.restored_log())
        return stdout.decode()

    def restored_log(self) -> str:
        """The last words of the restored server."""
        path = self.cluster.folder / "restored.log"
        return path.read_text(encoding="utf-8")[-2_000:] if path.exists() else "not started"


@asynccontextmanager
async def archived_server() -> AsyncGenerator[Drill]:
    """Yield a migrated server whose archive and base backup the guide's commands made."""
    async with running_cluster() as cluster:
        programs = next(iter(DEBIAN_PROGRAMS.glob("*/bin")))
        port = free_port()
        drill = Drill(
            cluster=cluster,
            variables={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "LANG": "C.UTF-8",
                "DATABASE_URL": cluster.url,
                "PGDATA": str(cluster.folder / "data"),
                "BACKUPS": str(cluster.folder / "backups"),
                "RESTORED_PGDATA": str(cluster.folder / "restored"),
                "RESTORED_PORT": str(port),
                "RESTORED_URL": cluster.url.replace(f":{cluster.port}/", f":{port}/"),
            },
        )
        await migrate.migrate(cluster.url)
        await drill.run(ARCHIVE)
        await drill.run(BASE)
        try:
            yield drill
        finally:
            if (cluster.folder / "restored" / "postmaster.pid").exists():
                await drill.run('pg_ctl stop --silent --mode immediate --pgdata "$RESTORED_PGDATA"')


async def charges(url: str, customer: Customer) -> dict[str, int]:
    """What each request of the customer cost, by its ID."""
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(_CHARGES, customer.org.organization_id)
    await connection.close()
    return {row["id"]: int(row["posted_pico"]) for row in rows}


async def passed_moment(url: str) -> str:
    """Return a moment that passes meanwhile, by the server's clock and as it prints it."""
    connection = await asyncpg.connect(url)
    moment = await connection.fetchval("SELECT (now() + interval '1 second')::text")

    async def is_past() -> bool:
        return await connection.fetchval("SELECT clock_timestamp() > $1::text::timestamptz", moment)

    await until(is_past)
    await connection.close()
    return moment


async def change_something(service: Service, customer: Customer) -> None:
    """Create a project and a key in it, and revoke the key, with an Admin key."""
    async with service.client(customer.admin_key) as client:
        projects = "/manage/v1/organization/projects"
        once = {"idempotency-key": "a-late-project"}
        made = await client.post(projects, json={"name": "late"}, headers=once)
        assert made.is_success, made.text
        project = made.json()
        keys = f"{projects}/{project['id']}/api_keys"
        key = (await client.post(keys, json={"name": "late"}, headers=LATE_KEY)).json()
        revoked = await client.post(f"{keys}/{key['id']}/revoke")
        assert revoked.is_success, revoked.text


def settings_of(cluster: Cluster, engine: str) -> Settings:
    return msgspec.structs.replace(
        settings_for(cluster.url),
        backends={"scripted": {"replicas": [engine], "takes": TAKES}},
        models={MODEL: model()},
    )


async def spend_across_a_moment(drill: Drill, folder: Path) -> tuple[str, list[Customer]]:
    """Let two customers spend before and after a moment, and one change something after it."""
    async with AsyncExitStack() as stack:
        engine = stack.enter_context(upstream_process())
        settings = settings_of(drill.cluster, engine)
        database = await connect(settings)
        stack.push_async_callback(database.close)
        customers = [await new_customer(database, settings) for _ in range(2)]
        service = await stack.enter_async_context(running_service(settings, folder))
        rotations = [Rotation(customer.key, MODEL) for customer in customers]
        async with AsyncExitStack() as callers:
            for rotation in rotations:
                await rotation.add("service", service)
                await callers.enter_async_context(calling(rotation))
            await asyncio.gather(*(rotation.served(REQUESTS) for rotation in rotations))
            moment = await passed_moment(drill.cluster.url)
            await asyncio.gather(*(rotation.served(REQUESTS) for rotation in rotations))
            await change_something(service, customers[0])
        for customer in customers:
            await customer.assert_settled([])
        assert {told.status for rotation in rotations for told in rotation.told} == {"200"}
        assert await service.stop() == 0
    return moment, customers


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    """The operator in the folder of the service's configuration and log."""
    tools = tmp_path / "tools"
    tools.mkdir()
    install(tools)
    return Operator(tmp_path, environment(tools))


@pytest.mark.clock
async def test_a_restored_server_adds_up_and_what_it_lost_is_listed_exactly(
    operator: Operator, record_property: Callable[[str, object], None]
) -> None:
    async with archived_server() as drill:
        moment, customers = await spend_across_a_moment(drill, operator.directory)
        before = [await charges(drill.cluster.url, customer) for customer in customers]
        last_file = (await drill.run(SWITCH)).strip()
        await until(lambda: exists(drill.cluster.folder / "backups" / "wal" / last_file))
        await drill.cluster.kill()

        drill.variables["MOMENT"] = moment
        await drill.run(RESTORE)
        restored_url = drill.variables["RESTORED_URL"]
        after = [await charges(restored_url, customer) for customer in customers]
        log = operator.directory / "log.jsonl"
        log.rename(operator.directory / "tollhouse.log")
        operator.environment.update(
            {"RESTORED_URL": restored_url, "MOMENT": moment, "PYTHONWARNINGS": "default"}
        )
        told = await asyncio.to_thread(operator.bash, VERIFY)
        operator.environment["TOLLHOUSE_DATABASE__URL"] = restored_url
        report = await asyncio.to_thread(
            operator_json, operator, "ledger", "lost", "--since", moment, "tollhouse.log"
        )

        lost = {
            str(customer.org.organization_id): {
                request_id: cost for request_id, cost in old.items() if request_id not in new
            }
            for customer, old, new in zip(customers, before, after, strict=True)
        }
        record_property("requests", sum(map(len, before)))
        record_property("lost", sum(map(len, lost.values())))
        assert "Every number follows from its entries" in told.stdout
        assert all(len(one) >= REQUESTS for one in lost.values())
        assert all(set(new) <= set(old) for old, new in zip(before, after, strict=True))
        assert {row["organization_id"]: sums(row) for row in report["data"]} == {
            owner: (len(own), to_decimal_string(PicoUsd(sum(own.values()))))
            for owner, own in lost.items()
        }
        assert [(row["organization_id"], row["operation"]) for row in report["changes"]] == [
            (str(customers[0].org.organization_id), operation)
            for operation in ("createProject", "createManagedProjectKey", "revokeProjectKey")
        ]
        for row in report["usage"]:
            await asyncio.to_thread(backfill, operator, row)
        await asyncio.to_thread(operator.bash, "tollhouse ledger verify")


async def exists(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)


def sums(row: dict[str, Any]) -> tuple[int, str]:
    assert row["requests_without_cost"] == 0
    assert row["last_admitted_at"] is not None
    return row["requests"], row["cost"]["value"]


def operator_json(operator: Operator, *arguments: str) -> dict[str, Any]:
    return operator.json(*arguments)


def backfill(operator: Operator, row: dict[str, Any]) -> None:
    """Enter lost usage as the guide says."""
    quantities = ("input_tokens", "cached_input_tokens", "output_tokens")
    entered = operator.json(
        *("ledger", "backfill", "--org", row["organization_id"], "--key", row["api_key_id"]),
        *("--model", row["model"], "--day", row["day"], "--amount", row["cost"]["value"]),
        *(f"--{name.replace('_', '-')}={row[name]}" for name in quantities),
        *("--reason", "restore"),
    )
    assert entered["posted"] == row["cost"]
