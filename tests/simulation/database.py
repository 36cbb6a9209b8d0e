"""The database as a worker sees it: the statements of the ledger, answered by the simulated one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from tests.simulation import loop as loops
from tests.simulation.ledger_server import LedgerServer, Row, hold_of
from tests.simulation.plan import Fate
from tests.simulation.system import SimulatedSystem
from tollhouse.ledger import batches
from tollhouse.ledger.types import (
    AdmissionVerdict,
    Charge,
    Hold,
    OperatorPays,
    Resolution,
    ResolutionKind,
)


class SimulatedDatabase:
    """One per worker."""

    def __init__(
        self, system: SimulatedSystem, server: LedgerServer, machine: loops.Machine
    ) -> None:
        self._world = system
        self._server = server
        self._machine = machine
        self._random = system.random(f"skips of {machine.name}")

    async def fetch_all(self, sql: str, *arguments: Any) -> list[Row]:
        """Run one of the three statements of the batcher."""
        ends, skips_locked, admitted, is_retry = _read(sql, arguments)
        resolutions = [_resolution(*row) for row in ends]
        holds = [hold_of(*row) for row in admitted]

        def work(fate: Fate) -> list[Row]:
            skips = fate is Fate.SKIPPED
            return self._work(resolutions, holds, is_retry=is_retry, skips=skips)

        return await self._server.call(
            work,
            reservations=[each.reservation_id for each in (*resolutions, *holds)],
            is_mixed=skips_locked,
        )

    def _work(
        self, resolutions: list[Resolution], holds: list[Hold], *, is_retry: bool, skips: bool
    ) -> list[Row]:
        self._refuse_stored(holds, is_retry=is_retry)
        rows: list[Row] = []
        for resolution in resolutions:
            is_skipped = skips and self._random.random() < 0.5
            rows.append(
                {"code": int(AdmissionVerdict.SKIPPED)}
                if is_skipped
                else {"code": int(self._server.settle(resolution, self._machine.name))}
            )
        for hold in holds:
            is_skipped = skips and self._random.random() < 0.5
            rows.append(
                {"code": int(AdmissionVerdict.SKIPPED)}
                if is_skipped
                else self._server.admit(hold, self._machine, is_retry=is_retry)
            )
        return rows

    def _refuse_stored(self, holds: list[Hold], *, is_retry: bool) -> None:
        """A batch is one transaction: what is stored already refuses all of it."""
        if is_retry:
            return
        for hold in holds:
            if self._server.is_live(hold.reservation_id):
                self._server.admit(hold, self._machine, is_retry=False)

    @asynccontextmanager
    async def transaction(self) -> "AsyncGenerator[SimulatedTransaction]":
        """Collect the statements and run them on leaving the block."""
        transaction = SimulatedTransaction(self._server)
        yield transaction
        await self._server.call(transaction.commit)


class SimulatedTransaction:
    """The one transaction of a worker: to store the provable minimum of a hold."""

    def __init__(self, server: LedgerServer) -> None:
        self._server = server
        self._minimums: list[tuple[Any, ...]] = []

    async def execute(self, sql: str, *arguments: Any) -> int:
        """Remember what is to be stored; locks are drawn with the fate of the call."""
        if "provable_charge" in sql:
            organization, reservations, _, charge, delivered_tokens, _ = arguments
            self._minimums.append((organization, reservations[0], charge, delivered_tokens))
        return 1

    def commit(self, _: Fate) -> list[Row]:
        """Store what was asked for."""
        for minimum in self._minimums:
            self._server.record_minimum(*minimum)
        return []


def _read(sql: str, arguments: tuple[Any, ...]) -> tuple[list[Any], bool, list[Any], bool]:
    """Return resolutions, whether locked accounts are skipped, holds, and whether it is a retry."""
    if sql == batches._SETTLE_ONE:  # pyright: ignore[reportPrivateUsage]
        return [arguments[0]], True, [], False
    if sql == batches._ADMIT_ONE:  # pyright: ignore[reportPrivateUsage]
        hold, _, is_retry = arguments
        return [], True, [hold], is_retry
    if sql == batches._APPLY_PAIR:  # pyright: ignore[reportPrivateUsage]
        end, skips_locked, hold, _, is_retry = arguments
        return [end], skips_locked, [hold], is_retry
    ends, skips_locked, holds, _, is_retry = arguments
    return ends, skips_locked, holds, is_retry


def _resolution(*row: Any) -> Resolution:
    """Read a row of the type `ledger_resolution`."""
    organization, reservation, day, kind, excess, *charge = row[:_BEFORE_ENDS]
    delivered, is_estimated, rule, model, writes, writes_pico = row[_BEFORE_ENDS:]
    return Resolution(
        organization_id=organization,
        reservation_id=reservation,
        admitted_day=day,
        kind=ResolutionKind(kind),
        charge=Charge(
            cache_write_tokens=writes,
            cache_write_pico_usd=writes_pico,
            **dict(zip(_CHARGE, cast("list[int]", charge), strict=True)),  # pyright: ignore[reportArgumentType]
        ),
        excess_pico_usd=excess,
        delivered_tokens=delivered,
        is_estimated=is_estimated,
        operator_pays=None if rule is None else OperatorPays(rule),
        model=model,
    )


_CHARGE = (
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "images",
    "input_pico_usd",
    "cached_input_pico_usd",
    "output_pico_usd",
    "image_pico_usd",
    "request_pico_usd",
)
_BEFORE_ENDS = 5 + len(_CHARGE)
