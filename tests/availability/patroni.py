"""PostgreSQL under Patroni with etcd on the machines of a network, as deploy/ configures it."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from tests.availability.network import Machine, Network, running_network
from tests.storage.cluster import DEBIAN_PROGRAMS

REPOSITORY = Path(__file__).parents[2]
PATRONI_FILE = REPOSITORY / "deploy" / "patroni.yaml"
HAPROXY_FILE = REPOSITORY / "deploy" / "haproxy.cfg"
PATRONI = "/opt/patroni/bin/patroni"
"""Where `bash .ci/run cluster_programs` installs it."""
PASSWORD = "availability"
HEALTHY_SECONDS_MAX = 180.0
ASK_SECONDS_MAX = 1.0
CONNECT_SECONDS_MAX = 5.0
USABLE_SECONDS_MAX = 60.0
FOLLOWING_SECONDS_MAX = 60.0
LOOK_EVERY_SECONDS = 0.5
SYNCHRONOUS_ROLES = frozenset({"sync_standby", "quorum_standby"})
PROXY = "proxy"
MACHINES = ("one", "two", "three")


@dataclass(frozen=True, kw_only=True)
class PatroniCluster:
    """Three machines with etcd; PostgreSQL runs on two or all of them."""

    network: Network
    database_machines: Sequence[Machine]
    client: httpx2.AsyncClient

    @property
    def machines(self) -> list[Machine]:
        return [self.network.machines[name] for name in MACHINES]

    def url(self, *, is_proxied: bool) -> str:
        """The URL of the gateway: all hosts, or the one of HAProxy."""
        hosts = [f"{machine.address}:5432" for machine in self.database_machines]
        if is_proxied:
            hosts = [f"{self.network.machines[PROXY].address}:5000"]
        return f"postgresql://tollhouse:{PASSWORD}@{','.join(hosts)}/tollhouse"

    def boot(self, machine: Machine) -> None:
        """Start what runs on the machine."""
        machine.plug_in()
        self.start_etcd(machine)
        if machine in self.database_machines:
            self.start_patroni(machine)

    def start_etcd(self, machine: Machine) -> None:
        peers = ",".join(f"{each.name}=http://{each.address}:2380" for each in self.machines)
        machine.start(
            *("etcd", "--name", machine.name, "--data-dir", f"{machine.disk}/etcd"),
            *("--listen-peer-urls", f"http://{machine.address}:2380"),
            *("--initial-advertise-peer-urls", f"http://{machine.address}:2380"),
            *("--listen-client-urls", f"http://{machine.address}:2379"),
            *("--advertise-client-urls", f"http://{machine.address}:2379"),
            *("--initial-cluster", peers),
            log="etcd",
        )

    def ensure_programs(self) -> None:
        """Start again what has ended, as after a full disk: services do so too."""
        for machine in self.machines:
            running = programs(machine).values()
            if "etcd" not in running:
                self.start_etcd(machine)
            if machine in self.database_machines and "patroni" not in running:
                self.start_patroni(machine)

    async def describe(self) -> list[str]:
        """What each server says of itself, for the message of a failure."""
        return [await _describe(machine) for machine in self.database_machines]

    @property
    def etcd_hosts(self) -> str:
        return ",".join(f"{each.address}:2379" for each in self.machines)

    def start_patroni(self, machine: Machine) -> None:
        environment = {
            "PATRONI_NAME": machine.name,
            "PATRONI_RESTAPI_LISTEN": f"{machine.address}:8008",
            "PATRONI_RESTAPI_CONNECT_ADDRESS": f"{machine.address}:8008",
            "PATRONI_POSTGRESQL_LISTEN": f"{machine.address}:5432",
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": f"{machine.address}:5432",
            "PATRONI_POSTGRESQL_DATA_DIR": f"{machine.disk}/data",
            "PATRONI_POSTGRESQL_BIN_DIR": str(next(DEBIAN_PROGRAMS.glob("*/bin"))),
            "PATRONI_POSTGRESQL_PGPASS": f"{machine.disk}/pgpass",
            "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
            "PATRONI_REPLICATION_PASSWORD": PASSWORD,
            "PATRONI_ETCD3_HOSTS": self.etcd_hosts,
        }
        machine.start(PATRONI, str(PATRONI_FILE), log="patroni", environment=environment)

    def start_proxy(self) -> None:
        proxy = self.network.machines[PROXY]
        names = ("PRIMARY_ONE", "PRIMARY_TWO", "PRIMARY_THREE")
        servers = dict(zip(names, (f"{each.address}:5432" for each in self.machines), strict=True))
        environment = {"HAPROXY_LISTEN": f"{proxy.address}:5000", **servers}
        proxy.start(
            "haproxy", "-db", "-f", str(HAPROXY_FILE), log="haproxy", environment=environment
        )

    async def wait_for_proxy(self) -> None:
        """Wait until the proxy has found out that the standbys are not the primary.

        At its start it takes each server in turn.
        """
        url = f"postgresql://postgres:{PASSWORD}@{self.network.machines[PROXY].address}:5000"
        async with asyncio.timeout(HEALTHY_SECONDS_MAX):
            while not all([await _is_primary(url) for _ in self.machines]):  # noqa: ASYNC110 - by TCP
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def ask(self, machine: Machine, path: str) -> httpx2.Response | None:
        """What Patroni on the machine answers, or None if it does not."""
        with suppress(httpx2.HTTPError):
            return await self.client.get(f"http://{machine.address}:8008{path}")
        return None

    async def primaries(self) -> list[Machine]:
        """The machines that say that they are the primary."""
        answers = await asyncio.gather(
            *(self.ask(machine, "/primary") for machine in self.database_machines)
        )
        pairs = zip(self.database_machines, answers, strict=True)
        return [machine for machine, answer in pairs if answer is not None and answer.is_success]

    async def primary(self) -> Machine:
        """The one primary; a busy machine may not say so at once."""
        async with asyncio.timeout(HEALTHY_SECONDS_MAX):
            while len(found := await self.primaries()) != 1:  # noqa: ASYNC110 - asked by HTTP
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        return found[0]

    async def members(self) -> list[dict[str, Any]]:
        for machine in self.database_machines:
            if (answer := await self.ask(machine, "/cluster")) is not None and answer.is_success:
                return answer.json()["members"]
        return []

    async def timeline(self) -> int:
        """The timeline of the primary."""
        members = await self.members()
        return next(each["timeline"] for each in members if each["role"] == "leader")

    async def synchronous_standby(self) -> Machine:
        async with asyncio.timeout(HEALTHY_SECONDS_MAX):
            while not (names := await self._synchronous_names()):  # noqa: ASYNC110 - by HTTP
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        return self.network.machines[names[0]]

    async def _synchronous_names(self) -> list[str]:
        return [
            member["name"] for member in await self.members() if member["role"] in SYNCHRONOUS_ROLES
        ]

    async def is_healthy(self) -> bool:
        """Whether all servers follow one primary that commits, by its own account and Patroni's.

        Patroni alone may call a standby running that waits for WAL which no server has.
        """
        members = await self.members()
        return (
            len(members) == len(self.database_machines)
            and len({member.get("timeline") for member in members}) == 1
            and any(member["role"] in SYNCHRONOUS_ROLES for member in members)
            and len(primaries := await self.primaries()) == 1
            and not await self._not_following(primaries[0])
            and await _can_commit(primaries[0])
        )

    async def _not_following(self, primary: Machine) -> list[str]:
        """Return the machines whose server does not stream from the primary."""
        following = await streaming_standbys(primary)
        others = (machine.name for machine in self.database_machines if machine is not primary)
        return [name for name in others if name not in following]

    async def wait_until_healthy(self) -> list[str]:
        """Return the machines that did not follow by themselves and were copied anew."""
        copied: list[str] = []
        begun = time.monotonic()
        try:
            async with asyncio.timeout(HEALTHY_SECONDS_MAX):
                while not await self.is_healthy():
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
                    self.ensure_programs()
                    if not copied and time.monotonic() > begun + FOLLOWING_SECONDS_MAX:
                        copied += await self._copy_anew()
        except TimeoutError:
            message = f"the servers did not recover: {await self.members()}"
            raise AssertionError(message, await self.describe()) from None
        return copied

    async def _copy_anew(self) -> list[str]:
        """Let Patroni make the standbys anew that do not follow, as an operator would."""
        behind = [
            name for each in await self.primaries() for name in await self._not_following(each)
        ]
        for name in behind:
            url = f"http://{self.network.machines[name].address}:8008/reinitialize"
            with suppress(httpx2.HTTPError):
                await self.client.post(url, json={"force": True}, timeout=CONNECT_SECONDS_MAX)
        return behind

    async def switch_over(self) -> None:
        old, new = await self.primary(), await self.synchronous_standby()
        wanted = {"leader": old.name, "candidate": new.name}
        url = f"http://{old.address}:8008/switchover"
        answer = await self.client.post(url, json=wanted, timeout=HEALTHY_SECONDS_MAX)
        assert answer.is_success, answer.text

    async def etcd_leader(self) -> tuple[Machine, int]:
        """The machine with the leader of etcd, and the process ID of etcd there."""
        for machine in self.machines:
            url = f"http://{machine.address}:2379/v3/maintenance/status"
            with suppress(httpx2.HTTPError):
                status = (await self.client.post(url, json={})).json()
                if status["leader"] == status["header"]["member_id"]:
                    return machine, _pid_of(machine, "etcd")
        message = "etcd has no leader"
        raise AssertionError(message)

    def kill_postmaster(self, machine: Machine) -> None:
        pid_file = machine.disk / "data" / "postmaster.pid"
        os.kill(int(pid_file.read_text(encoding="utf-8").split()[0]), signal.SIGKILL)

    async def create_database(self) -> None:
        connection = await asyncpg.connect(_administration_url(await self.primary()))
        await connection.execute(f"CREATE ROLE tollhouse LOGIN PASSWORD '{PASSWORD}'")
        await connection.execute("CREATE DATABASE tollhouse OWNER tollhouse")
        await connection.execute("GRANT pg_monitor TO tollhouse")
        await connection.close()


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """A machine became the primary, and then could commit: its own standby had to follow first."""

    promoted_at: float
    usable_at: float


class PrimaryWatch:
    """Records the promotions, and the newest timeline that a primary had."""

    def __init__(self, cluster: PatroniCluster) -> None:
        self._cluster = cluster
        self.promotions: list[Promotion] = []
        self.newest_timeline = 0

    async def run(self) -> None:
        machines = self._cluster.database_machines
        await asyncio.gather(*(self._follow(machine) for machine in machines))

    async def _follow(self, machine: Machine) -> None:
        was_primary = machine in await self._cluster.primaries()
        while True:
            answer = await self._cluster.ask(machine, "/primary")
            if answer is not None:
                if answer.is_success:
                    timeline = answer.json().get("timeline", 0)
                    self.newest_timeline = max(self.newest_timeline, timeline)
                if answer.is_success and not was_primary:
                    await self._record(machine)
                was_primary = answer.is_success
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _record(self, machine: Machine) -> None:
        promoted_at = time.monotonic()
        while time.monotonic() < promoted_at + USABLE_SECONDS_MAX:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await _commit(machine)
                self.promotions.append(
                    Promotion(promoted_at=promoted_at, usable_at=time.monotonic())
                )
                return


async def streaming_standbys(primary: Machine) -> set[str]:
    """Return the standbys that stream from the primary; none if none of them is synchronous."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            connection = await asyncpg.connect(_administration_url(primary))
            rows = await connection.fetch(
                "SELECT application_name, sync_state FROM pg_stat_replication"
                " WHERE state = 'streaming'"
            )
            connection.terminate()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return set()
    if not any(row["sync_state"] in {"sync", "quorum"} for row in rows):
        return set()
    return {row["application_name"] for row in rows}


async def _is_primary(url: str) -> bool:
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection = await asyncpg.connect(url, database="postgres", timeout=CONNECT_SECONDS_MAX)
        is_standby = await connection.fetchval("SELECT pg_is_in_recovery()")
        connection.terminate()
        return not is_standby
    return False


async def _can_commit(primary: Machine) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            await _commit(primary)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    return True


async def _commit(machine: Machine) -> None:
    """Return when the machine has stored something on its synchronous standby."""
    connection = await asyncpg.connect(_administration_url(machine), timeout=CONNECT_SECONDS_MAX)
    try:
        await connection.execute(
            "SELECT pg_logical_emit_message(true, 'tests', '')", timeout=USABLE_SECONDS_MAX
        )
    finally:
        connection.terminate()


def _administration_url(machine: Machine) -> str:
    return f"postgresql://postgres:{PASSWORD}@{machine.address}:5432/postgres"


@asynccontextmanager
async def running_patroni(
    folder: Path, *, databases: int, is_proxied: bool
) -> AsyncGenerator[PatroniCluster]:
    """Yield a healthy cluster with an empty database for the gateway."""
    names = (*MACHINES, PROXY) if is_proxied else MACHINES
    with running_network(folder, names) as network:
        machines = [network.machines[name] for name in MACHINES[:databases]]
        async with httpx2.AsyncClient(timeout=ASK_SECONDS_MAX, trust_env=False) as client:
            cluster = PatroniCluster(network=network, database_machines=machines, client=client)
            for machine in cluster.machines:
                cluster.boot(machine)
            await cluster.wait_until_healthy()
            if is_proxied:
                cluster.start_proxy()
                await cluster.wait_for_proxy()
            await cluster.create_database()
            yield cluster


def programs(machine: Machine) -> dict[int, str]:
    """The names of the programs that run on the machine, by their process IDs."""
    found: dict[int, str] = {}
    for pid in machine.processes():
        with suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return found


def _pid_of(machine: Machine, program: str) -> int:
    return next(pid for pid, name in programs(machine).items() if name == program)


async def _describe(machine: Machine) -> str:
    try:
        connection = await asyncpg.connect(
            _administration_url(machine), timeout=CONNECT_SECONDS_MAX
        )
        row = await connection.fetchrow(
            """
            SELECT pg_is_in_recovery() AS is_standby,
                   (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline,
                   current_setting('synchronous_standby_names') AS synchronous,
                   (SELECT string_agg(application_name || ' ' || state || ' ' || sync_state, ', ')
                      FROM pg_stat_replication) AS standbys,
                   pg_postmaster_start_time() AS started_at
            """
        )
        await connection.close()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return f"{machine.name} {machine.address}: {error!r}"
    return f"{machine.name} {machine.address}: {row}"
