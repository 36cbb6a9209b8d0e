"""A provider fails for a while beside a healthy one: callers hardly notice, and the money is right.

`make test-outages` runs all cells for 30 s each, and records them. The landing check runs twelve.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.outages.cells import FAULTS, Cell, every_cell, few_cells
from tests.outages.results import CellResult, recorded, write
from tests.outages.site import CellRun, Site, running_site
from tests.support.engine import COMMAND

CELLS: Final = os.environ.get("TOLLHOUSE_OUTAGE_CELLS", "few")
FAULT_SECONDS: Final = float(os.environ.get("TOLLHOUSE_OUTAGE_SECONDS", "30"))
SIDE_BY_SIDE: Final = 4
EJECTED_FROM_SECONDS: Final = 6.0
ANSWERED_MIN: Final = 0.95
ANSWERED_LATER_MIN: Final = 0.99
SICK_SHARE_MAX: Final = 0.05
BACK_SECONDS_MAX: Final = 15.0

_CALLED: Final = """
    SELECT hold.reservation_id, end_.posted_pico
      FROM ledger_entries hold
      LEFT JOIN ledger_entries end_
        ON end_.organization_id = hold.organization_id
       AND end_.admitted_day = hold.admitted_day
       AND end_.reservation_id = hold.reservation_id
       AND end_.phase = 1
     WHERE hold.organization_id = $1 AND hold.phase = 0
"""


def _groups() -> list[list[Cell]]:
    """Return the cells that run side by side, without those that are recorded."""
    if CELLS == "few":
        left = few_cells()
    else:
        done = recorded()
        left = [cell for cell in every_cell() if cell.name not in done]
    return [left[at : at + SIDE_BY_SIDE] for at in range(0, len(left), SIDE_BY_SIDE)]


def _result(run: CellRun) -> CellResult:
    fault = FAULTS[run.cell.fault]
    return CellResult(
        cell=run.cell.name,
        calls=len(run.during),
        answered=run.answered_share(),
        answered_later=run.answered_share(from_seconds=EJECTED_FROM_SECONDS),
        sick_share=None if fault.is_slow else run.sick_share(from_seconds=EJECTED_FROM_SECONDS),
        back_seconds=None if fault.script is None or fault.is_slow else run.back_after_seconds,
    )


def _faults_of(run: CellRun, result: CellResult) -> list[str]:
    """Return the bars that a cell misses."""
    found: list[str] = []
    if not run.cell.is_billed and result.answered < ANSWERED_MIN:
        found.append(f"{result.answered:.3f} answered")
    if not run.cell.is_billed and result.answered_later < ANSWERED_LATER_MIN:
        found.append(f"{result.answered_later:.3f} answered from {EJECTED_FROM_SECONDS:g} s on")
    if result.sick_share is not None and result.sick_share > SICK_SHARE_MAX:
        found.append(f"{result.sick_share:.3f} of all calls went to the sick provider")
    fault = FAULTS[run.cell.fault]
    if fault.script is not None and not fault.is_slow:
        back = result.back_seconds
        if back is None or back > BACK_SECONDS_MAX:
            found.append(f"callers were back after {back} s")
    return found


async def _money_faults(site: Site, runs: Sequence[CellRun]) -> list[str]:
    """Return what is wrong between the upstreams' logs and the ledger.

    What may have been billed and was not answered stays held, until the operator knows its cost.
    """
    rows = await site.database.fetch_all(_CALLED, site.customer.org.organization_id)
    posted = {str(row["reservation_id"]): row["posted_pico"] for row in rows}
    held_on = {
        answer.request_id
        for run in runs
        for answer in run.answers
        if run.cell.is_billed and not answer.is_answered
    }
    found = [
        f"{name} is not resolved"
        for name, pico in posted.items()
        if pico is None and name not in held_on
    ]
    for run in runs:
        called = {number for _, number in (*run.sick_calls, *run.well_calls)}
        for answer in run.answers:
            held = posted.get(answer.request_id or "")
            if answer.number in called and answer.request_id not in {*posted, None}:
                found.append(f"call {answer.number} had no hold")
            if held and answer.number not in called:
                found.append(f"{answer.request_id} is charged and was never called")
            if answer.is_answered and not held:
                found.append(f"{answer.request_id} is answered and not charged")
    return found


@pytest.mark.guarantee("T41")
@pytest.mark.parametrize(
    "cells", _groups(), ids=lambda cells: "+".join(cell.name for cell in cells)
)
async def test_callers_hardly_notice(
    migrated_template: str, tmp_path: Path, cells: list[Cell]
) -> None:
    async with running_site(migrated_template, tmp_path, cells) as site:
        runs = await site.run(FAULT_SECONDS)
        money: list[str] = ["?"]
        for _ in range(50):
            if not (money := await _money_faults(site, runs)):
                break
            await asyncio.sleep(0.2)  # a charge commits after its answer
        _verify_ledger(site.configuration)

    results = [_result(run) for run in runs]
    if CELLS != "few":
        write(results)
    missed = {
        run.cell.name: faults
        for run, result in zip(runs, results, strict=True)
        if (faults := _faults_of(run, result))
    }
    assert not money
    assert not missed, msgspec.json.encode(results).decode()


def _verify_ledger(configuration: Path) -> None:
    verified = subprocess.run(
        [sys.executable, "-c", COMMAND, "ledger", "verify", "--json"],
        env={"TOLLHOUSE_CONFIG": str(configuration)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
