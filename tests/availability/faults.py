"""The faults: each is done to a cluster under traffic, and undone."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.availability.network import Machine
from tests.availability.patroni import LOOK_EVERY_SECONDS, PatroniCluster

FREEZE_SECONDS = 60.0
CUT_SECONDS = 15.0
LONG_CUT_SECONDS = 30.0
"""Long enough for the lock of the primary to end and a standby to be promoted."""
STANDBY_SECONDS = 15.0
DISK_SECONDS = 15.0
REPLACED_SECONDS_MAX = 90.0
OFF_SECONDS = 2.0
FILL_BYTES = 1024 * 1024
REPLICATION_PORTS = (5432, 8008)
ETCD_PORTS = (2379, 2380)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is done, in the words of the table."""

    words: str
    run: Callable[[PatroniCluster], Awaitable[None]]


async def kill_machine(cluster: PatroniCluster) -> None:
    primary = await cluster.primary()
    await asyncio.to_thread(primary.kill)
    await _until_replaced(cluster, primary)
    cluster.boot(primary)


async def kill_standby(cluster: PatroniCluster) -> None:
    standby = await cluster.synchronous_standby()
    await asyncio.to_thread(standby.kill)
    await asyncio.sleep(STANDBY_SECONDS)
    cluster.boot(standby)


async def kill_postmaster(cluster: PatroniCluster) -> None:
    cluster.kill_postmaster(await cluster.primary())


async def switch_over(cluster: PatroniCluster) -> None:
    await cluster.switch_over()


async def freeze_primary(cluster: PatroniCluster) -> None:
    await _freeze(await cluster.primary(), FREEZE_SECONDS)


async def freeze_standby(cluster: PatroniCluster) -> None:
    await _freeze(await cluster.synchronous_standby(), STANDBY_SECONDS)


async def cut_from_callers(cluster: PatroniCluster) -> None:
    callers = [cluster.network.callers]
    await _cut(await cluster.primary(), callers, seconds=CUT_SECONDS)


async def cut_from_standbys(cluster: PatroniCluster) -> None:
    primary = await cluster.primary()
    others = _others(cluster, primary)
    await _cut(primary, others, ports=REPLICATION_PORTS, seconds=CUT_SECONDS)


async def cut_from_etcd(cluster: PatroniCluster) -> None:
    primary = await cluster.primary()
    others = _others(cluster, primary)
    await _cut(primary, others, ports=ETCD_PORTS, seconds=LONG_CUT_SECONDS)


async def cut_from_everything(cluster: PatroniCluster) -> None:
    primary = await cluster.primary()
    others = [cluster.network.callers, *_others(cluster, primary)]
    await _cut(primary, others, seconds=LONG_CUT_SECONDS)


async def fill_disk(cluster: PatroniCluster) -> None:
    primary = await cluster.primary()
    filling = primary.disk / "filling"
    try:
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(FILL_BYTES))
        await asyncio.sleep(DISK_SECONDS)
    finally:
        filling.unlink()
        cluster.ensure_programs()


async def restart_everything(cluster: PatroniCluster) -> None:
    for machine in cluster.machines:
        await asyncio.to_thread(machine.kill)
    await asyncio.sleep(OFF_SECONDS)
    for machine in cluster.machines:
        cluster.boot(machine)


async def kill_etcd_leader(cluster: PatroniCluster) -> None:
    machine, pid = await cluster.etcd_leader()
    machine.kill_process(pid)
    await asyncio.sleep(OFF_SECONDS)
    cluster.start_etcd(machine)


async def _freeze(machine: Machine, seconds: float) -> None:
    machine.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        machine.signal(signal.SIGCONT)


async def _cut(
    machine: Machine, addresses: list[str], *, ports: tuple[int, ...] = (), seconds: float
) -> None:
    machine.cut_off(addresses, ports=ports)
    try:
        await asyncio.sleep(seconds)
    finally:
        machine.mend()


def _others(cluster: PatroniCluster, machine: Machine) -> list[str]:
    return [each.address for each in cluster.machines if each is not machine]


async def _names(cluster: PatroniCluster) -> list[str]:
    return [machine.name for machine in await cluster.primaries()]


async def _until_replaced(cluster: PatroniCluster, lost: Machine) -> None:
    async with asyncio.timeout(REPLACED_SECONDS_MAX):
        while not set(await _names(cluster)) - {lost.name}:  # noqa: ASYNC110 - asked by HTTP
            await asyncio.sleep(LOOK_EVERY_SECONDS)


FAULTS = {
    "kill_machine": Fault(words="the primary's machine loses power", run=kill_machine),
    "kill_postmaster": Fault(words="the primary's server is killed (-9)", run=kill_postmaster),
    "switch_over": Fault(words="switchover to the standby", run=switch_over),
    "freeze_primary": Fault(
        words=f"the primary's machine freezes for {FREEZE_SECONDS:g} s", run=freeze_primary
    ),
    "cut_from_callers": Fault(
        words=f"the primary is cut off from its callers for {CUT_SECONDS:g} s", run=cut_from_callers
    ),
    "cut_from_standbys": Fault(
        words=f"the primary is cut off from all standbys for {CUT_SECONDS:g} s",
        run=cut_from_standbys,
    ),
    "cut_from_etcd": Fault(
        words=f"the primary is cut off from etcd for {LONG_CUT_SECONDS:g} s", run=cut_from_etcd
    ),
    "cut_from_everything": Fault(
        words=f"the primary is cut off from everything for {LONG_CUT_SECONDS:g} s",
        run=cut_from_everything,
    ),
    "kill_standby": Fault(words="a synchronous standby's machine loses power", run=kill_standby),
    "freeze_standby": Fault(
        words=f"a synchronous standby's machine freezes for {STANDBY_SECONDS:g} s",
        run=freeze_standby,
    ),
    "fill_disk": Fault(words=f"the primary's disk is full for {DISK_SECONDS:g} s", run=fill_disk),
    "restart_everything": Fault(
        words="all three machines lose power and start again", run=restart_everything
    ),
    "kill_etcd_leader": Fault(words="the leader of etcd is killed (-9)", run=kill_etcd_leader),
}
