"""Organizations move under load, commands are killed at each step, and a cell is lost.

Half of the customers call through nginx, and half through Envoy. Every answer must be charged
exactly once, in the cell where its organization lives at the end.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from uuid import UUID

import pytest

from tests.cells.cell import Cell, CellCustomer, customer, two_cells
from tests.cells.moving import UNDOABLE, begin_and_undo, move, update_routes
from tests.cells.traffic import CLOSED, REFUSED, History, calling
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.deployment import CREDIT
from tests.support.edges import EdgeProxy, envoy_edge, nginx_edge
from tests.support.upstream import upstream_process
from tollhouse.cli.moves.steps import MoveStep

ORGANIZATIONS = int(os.environ.get("TOLLHOUSE_CELL_ORGANIZATIONS", "4"))
MOVES = int(os.environ.get("TOLLHOUSE_CELL_MOVES", "2"))
"""Every second organization that moves is behind nginx, the others are behind Envoy. Half of them
move back, without kills."""
KILLS = int(os.environ.get("TOLLHOUSE_CELL_KILLS", "1"))
"""At how many steps of a move its command is killed; there are 12."""
UNDONE = int(os.environ.get("TOLLHOUSE_CELL_UNDONE", "1"))
"""How many moves are begun, killed and given up first; there are 9 steps where that is possible."""
OF_MOVES = {"503 organization_moving", "503 organization_moved"}


@dataclass(frozen=True)
class Drill:
    """Two cells under load, and where each customer lives."""

    eu1: Cell
    us1: Cell
    lives: dict[CellCustomer, Cell]
    histories: dict[CellCustomer, History]
    folder: Path

    def of(self, cell: Cell) -> list[History]:
        return [self.histories[owner] for owner, home in self.lives.items() if home is cell]

    async def move(
        self, mover: CellCustomer, target: Cell, kills: frozenset[MoveStep] = frozenset()
    ) -> None:
        """Move a customer until it is served by the other cell."""
        history, source = self.histories[mover], self.lives[mover]
        await move(mover, source, target, self.folder / str(mover.organization_id), kills)
        self.lives[mover] = target
        await update_routes(history.edge, self.eu1, self.us1)
        await history.is_served_again()

    async def undo(self, mover: CellCustomer, step: MoveStep) -> None:
        """Begin to move a customer and give it up, until its cell serves it again."""
        folder = self.folder / f"undone-{mover.organization_id}"
        await begin_and_undo(mover, self.lives[mover], self.us1, folder, step)
        await self.histories[mover].is_served_again()

    async def lose_eu1(self) -> None:
        """Kill a cell and restore it. The other one must not notice."""
        before = {owner: history.statuses.copy() for owner, history in self.histories.items()}
        await self.eu1.kill()
        for history in self.of(self.us1):
            await history.is_served_again()
        during = {
            owner: history.statuses - before[owner] for owner, history in self.histories.items()
        }
        await self.eu1.restore()
        for history in self.histories.values():
            await history.is_served_again()
        felt = {owner for owner, statuses in during.items() if set(statuses) - {"200"}}
        assert felt, "nobody called while the cell was away"
        noticed = [self.histories[owner] for owner in felt if self.lives[owner] is self.us1]
        assert not noticed, [(during[each.customer], each.refusals) for each in noticed]


async def _entries(cell: Cell, owner: CellCustomer, kind: str) -> list[tuple[UUID, int]]:
    rows = await cell.database.fetch_all(
        """
        SELECT reservation_id, posted_pico
          FROM ledger_entries
         WHERE organization_id = $1
           AND kind = $2
        """,
        owner.organization_id,
        kind,
    )
    return [(row["reservation_id"], row["posted_pico"]) for row in rows]


async def assert_charged_once(cell: Cell, history: History, *, failures: int) -> None:
    """Nothing answered is missing, nothing is charged twice, and the account has exactly the sum.

    `failures` is how many requests may have reached a gateway that was killed.
    """
    owner = history.customer
    admitted = {reservation for reservation, _ in await _entries(cell, owner, "reserve")}
    posted = await _entries(cell, owner, "post")
    charged = Counter(reservation for reservation, _ in posted)
    (account,) = await cell.database.fetch_all(
        "SELECT credit_pico, settled_pico FROM accounts WHERE organization_id = $1",
        owner.organization_id,
    )

    assert set(charged.values()) == {1}
    assert history.answered <= set(charged)
    assert len(set(charged) - history.answered) <= failures
    assert len(admitted - history.answered) <= failures + history.statuses[REFUSED]
    assert account["credit_pico"] == CREDIT
    assert account["settled_pico"] == sum(amount for _, amount in posted)
    assert len({amount for _, amount in posted}) == 1, "all answers are alike, and so are prices"


def _draws() -> Iterator[frozenset[MoveStep]]:
    random = seeds.chance("cells")
    while True:
        yield frozenset(random.sample(list(MoveStep), KILLS))


def _undone_steps() -> list[MoveStep]:
    return seeds.chance("cells undone").sample(UNDOABLE, UNDONE)


async def _customers(eu1: Cell, us1: Cell) -> dict[CellCustomer, Cell]:
    """Customers by turns in the two cells, which the four combinations with the proxies need."""
    homes = [eu1, us1] * (ORGANIZATIONS // 2)
    return {await customer(home, f"customer {n}"): home for n, home in enumerate(homes)}


def _edges(
    lives: dict[CellCustomer, Cell], edges: Sequence[EdgeProxy]
) -> dict[CellCustomer, EdgeProxy]:
    """Give every second customer of each cell to the same proxy."""
    turns = {cell: cycle(edges) for cell in {home.name for home in lives.values()}}
    return {owner: next(turns[home.name]) for owner, home in lives.items()}


@pytest.mark.clock
@pytest.mark.nightly
async def test_moves_and_the_loss_of_a_cell_cost_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = _draws()
    with upstream_process() as upstream:
        async with two_cells(tmp_path, [upstream]) as (eu1, us1):
            lives = await _customers(eu1, us1)
            movers = [owner for owner, home in lives.items() if home is eu1][:MOVES]
            for name in ("nginx", "envoy"):
                (tmp_path / f"{name}-edge").mkdir()
            async with (
                nginx_edge(tmp_path / "nginx-edge", eu1.port, us1.port) as nginx,
                envoy_edge(tmp_path / "envoy-edge", eu1.port, us1.port) as envoy,
                calling(_edges(lives, (nginx, envoy))) as histories,
            ):
                drill = Drill(eu1, us1, lives, histories, tmp_path)
                for mover, step in zip(cycle(movers), _undone_steps(), strict=False):
                    await drill.undo(mover, step)
                for mover in movers:
                    await drill.move(mover, us1, next(kills))
                killed = max(max(histories[mover].freezes) for mover in movers)
                back = movers[: (MOVES + 1) // 2]
                for mover in back:
                    await drill.move(mover, eu1)
                whole = max(histories[mover].freezes[-1] for mover in back)
                await drill.lose_eu1()

            for history in drill.of(us1):
                # The surviving cell answered whatever reached it; Envoy closes no connection.
                closes = {CLOSED} if history.edge is nginx else set[str]()
                assert set(history.statuses) <= {"200"} | OF_MOVES | closes, history.refusals
            for owner, history in histories.items():
                failures = 0 if lives[owner] is us1 else history.failures()
                await assert_charged_once(lives[owner], history, failures=failures)
            for cell in (eu1, us1):
                await assert_conserved(cell.database)

    with capsys.disabled():
        refusals = [line for history in histories.values() for line in history.refusals]
        statuses = sum((history.statuses for history in histories.values()), Counter[str]())
        sys.stdout.write(
            f"\n{ORGANIZATIONS} organizations behind nginx and Envoy, {UNDONE} moves undone,"
            f" {MOVES} killed {KILLS} times each, {len(back)} moved back without kills;"
            f" {statuses['200']} answers, 0 lost, 0 double;"
            f" {statuses[CLOSED]} connections closed before an answer,"
            f" {statuses[REFUSED]} requests refused {refusals[:5]};"
            f" longest freeze with kills {killed:.1f} s, without {whole:.1f} s\n"
        )
