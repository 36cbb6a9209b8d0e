"""`tollhouse ledger`, and the guide to it."""

import asyncio
import json
from datetime import timedelta
from uuid import UUID

import pytest

from tests.cli.commands import Operator, execute, refusal
from tests.cli.documents import read, scripts
from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.support.organization_fixture import new_organization_fixture
from tollhouse.base.ids import ReservationId
from tollhouse.cli.session import Session
from tollhouse.ledger import reaper

ID = "01890a5d-ac96-774b-bcce-b302099a8057"
SETTLE = ("settle", ID, "--amount", "1", "--yes")
RELEASE = ("release", ID, "--yes")
BACKFILL = ("backfill", "--key", ID, "--model", "m", "--amount", "1", "--day", "2026-01-31")


def with_unsettled(operator: Operator, url: str, holds: int) -> tuple[UUID, list[ReservationId]]:
    """A key of a new organization, and its reservations that nobody settled."""

    async def prepare(session: Session) -> tuple[UUID, list[ReservationId]]:
        org = await new_organization_fixture(session.database)
        ledger = await open_ledger(org, url)
        found = [await _unsettled(ledger) for _ in range(holds)]
        await reaper.run(session.database)
        return ledger.key_id, found

    return operator.do(prepare)


async def _unsettled(ledger: DirectLedger) -> ReservationId:
    hold = await ledger.hold(1_000)
    await ledger.let_pass(hold, timedelta(seconds=70))
    return hold.reservation_id


def test_the_guide_can_be_followed_to_its_end(patient: Operator, database_url: str) -> None:
    verify, verify_all, unsettled, settle, release, backfill, last = scripts(
        read("docs/guides/operating-the-ledger.md")
    )
    key, (first, second) = with_unsettled(patient, database_url, 2)
    patient.environment.update(
        {
            "RESERVATION_ID": str(first),
            "OTHER_RESERVATION_ID": str(second),
            "KEY_ID": str(key),
        }
    )

    for script in (verify, verify_all):
        assert "Every number follows from its entries" in patient.bash(script).stdout
    listed = patient.bash(unsettled).stdout
    assert str(first) in listed
    assert str(second) in listed
    assert "0.0000000006" in patient.bash(settle).stdout
    assert "void" in patient.bash(release).stdout
    assert "12.5" in patient.bash(backfill).stdout
    ended = patient.bash(last).stdout
    assert "Every number follows from its entries" in ended
    for action in ("ledger.settle", "ledger.release", "ledger.backfill"):
        assert action in ended


def test_differences_are_shown_and_end_with_1(patient: Operator, database_url: str) -> None:
    with_unsettled(patient, database_url, 1)
    assert patient.json("ledger", "verify") == {
        "object": "ledger.verification",
        "sound": True,
        "organizations": 1,
        "data": [],
    }

    asyncio.run(execute(database_url, "UPDATE accounts SET written_off_excess_pico = 7"))
    found = patient.json("ledger", "verify", exit_code=1)
    shown = patient.run("ledger", "verify", exit_code=1).stdout

    assert found["sound"] is False
    (difference,) = found["data"]
    assert difference["name"] == "account.written_off_excess_pico"
    assert (difference["expected"], difference["found"]) == (0, 7)
    assert "account.written_off_excess_pico" in shown
    organization = difference["organization_id"]
    assert patient.json("ledger", "verify", "--org", organization, exit_code=1) == found


def test_what_is_listed_and_decided_is_json_too(patient: Operator, database_url: str) -> None:
    _, (reservation,) = with_unsettled(patient, database_url, 1)

    (listed,) = patient.json("ledger", "unsettled")["data"]
    settled = patient.run(
        *("ledger", "settle", str(reservation), "--amount", "1", "--reason", "a test"),
        *("--yes", "--json"),
    )
    ended = json.loads(settled.stdout)
    rung = json.loads(settled.stderr)

    assert listed["id"] == str(reservation)
    assert listed["held"] == {"value": "0.000000001", "currency": "usd"}
    assert ended["posted"] == {"value": "0.000000001", "currency": "usd"}
    assert ended["excess"] == {"value": "0.999999999", "currency": "usd"}
    assert (rung["level"], rung["event"]) == ("error", "charge_exceeds_hold")
    assert rung["reservation_id"] == str(reservation)
    assert rung["amount_pico_usd"] == 999_999_999_000
    assert patient.json("ledger", "unsettled")["data"] == []
    assert (
        patient.failure_code("ledger", "release", str(reservation), "--reason", "again", "--yes")
        == "reservation_not_found"
    )


@pytest.mark.parametrize("verb", [SETTLE, RELEASE, BACKFILL])
@pytest.mark.parametrize("reason", ["", " "])
def test_a_decision_without_a_reason_is_refused(verb: tuple[str, ...], reason: str) -> None:
    assert "Invalid value for '--reason'" in refusal("ledger", *verb, "--reason", reason)


@pytest.mark.parametrize("day", ["0001-01-01", "1969-12-31"])
def test_a_day_that_no_report_reaches_is_refused(day: str) -> None:
    refused = refusal("ledger", *BACKFILL, "--day", day, "--reason", "a test")

    assert "Reports begin at 1970-01-01." in refused


@pytest.mark.parametrize("amount", ["1e3", "0.0000000000001", "a lot", ""])
def test_an_amount_that_is_not_exact_is_a_usage_error(operator: Operator, amount: str) -> None:
    refused = operator.run(
        *("ledger", "settle", ID, "--amount", amount, "--reason", "a test"), exit_code=2
    )

    assert "12.5" in refused.stderr
