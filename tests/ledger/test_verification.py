"""`verify` finds whatever does not follow from grants and entries, and nothing else."""

import pytest

from tests.ledger.direct_ledger import DirectLedger, open_ledger
from tests.ledger.invariants import assert_conserved
from tests.ledger.mixed_ledger import mixed_ledger
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.ledger import verification
from tollhouse.ledger.types import OperatorPays

UNCOUNTED = """
    short_start = '-infinity', short_settled_pico = 0, short_reserved_pico = 0,
    previous_settled_pico = 0, previous_reserved_pico = 0
"""
"""Of counters in whose day or week no hold was admitted."""


@pytest.fixture
async def ledger(org: OrganizationFixture, database_url: str) -> DirectLedger:
    return await mixed_ledger(org, database_url)


async def differences(ledger: DirectLedger) -> dict[str, tuple[int | None, int | None]]:
    found = await verification.verify(ledger.org.database, ledger.org.organization_id)
    return {difference.name: (difference.expected, difference.found) for difference in found}


@pytest.mark.guarantee("I2", "I7")
async def test_a_sound_ledger_has_no_differences(ledger: DirectLedger) -> None:
    await assert_conserved(ledger.org.database)


@pytest.mark.guarantee("I2")
@pytest.mark.parametrize(
    ("tampering", "names"),
    [
        (
            "UPDATE accounts SET credit_pico = credit_pico + 1, ceiling_pico = ceiling_pico + 1",
            {"account.credit_pico", "account.ceiling_pico"},
        ),
        ("UPDATE accounts SET settled_pico = settled_pico - 1", {"account.settled_pico"}),
        ("UPDATE accounts SET reserved_pico = reserved_pico + 1", {"account.reserved_pico"}),
        ("UPDATE accounts SET ceiling_pico = ceiling_pico + 1", {"account.ceiling_pico"}),
        ("UPDATE accounts SET written_off_excess_pico = 1", {"account.written_off_excess_pico"}),
        ("UPDATE accounts SET written_off_unknown_pico = 1", {"account.written_off_unknown_pico"}),
        (
            "UPDATE credit_grants SET amount_pico = amount_pico + 1 WHERE kind = 'sandbox'",
            {"account.credit_pico", "account.ceiling_pico"},
        ),
        (
            "UPDATE spending_counters SET settled_pico = 0 WHERE window_start = '-infinity'",
            {"counter.settled_pico"},
        ),
        (
            "UPDATE spending_counters SET reserved_pico = 0 WHERE scope = 'project'",
            {"counter.reserved_pico"},
        ),
        (
            "DELETE FROM spending_counters WHERE scope = 'api_key'",
            {"counter.settled_pico", "counter.reserved_pico"},
        ),
        (
            (
                "INSERT INTO spending_caps SELECT organization_id, 'organization', organization_id,"
                " 'lifetime', 5000, 80 FROM accounts"
            ),
            {"counter.limit_pico", "counter.alert_pico", "counter.ceiling_pico"},
        ),
        (
            (
                "UPDATE spending_counters SET limit_pico = 900, ceiling_pico = 900"
                " WHERE scope = 'project'"
            ),
            {"counter.limit_pico", "counter.ceiling_pico"},
        ),
        ("UPDATE cost_daily SET requests = requests + 1", {"cost_daily.requests"}),
        (
            "UPDATE cost_daily SET request_pico = 0 WHERE day < current_date - 30",
            {"cost_daily.request_pico"},
        ),
        ("UPDATE cost_hourly SET input_tokens = 0", {"cost_hourly.input_tokens"}),
        (
            (
                "UPDATE cost_hourly SET hour = hour + interval '1 hour' WHERE input_pico = 0"
                " AND hour > current_date - 30"
            ),
            {
                *("cost_hourly.requests", "cost_hourly.estimated_requests"),
                *("cost_hourly.images", "cost_hourly.input_tokens"),
                *("cost_hourly.cached_input_tokens", "cost_hourly.output_tokens"),
                *("cost_hourly.input_pico", "cost_hourly.cached_input_pico"),
                *("cost_hourly.output_pico", "cost_hourly.image_pico"),
                *("cost_hourly.request_pico", "cost_hourly.cache_write_tokens"),
                "cost_hourly.cache_write_pico",
            },
        ),
        (
            # The closed day may be its month's newest, or not.
            (
                f"WITH uncounted AS (UPDATE spending_counters SET {UNCOUNTED})"  # noqa: S608 - ours
                " UPDATE ledger_closings SET request_pico = request_pico + 1"
            ),
            {
                *("account.settled_pico", "counter.settled_pico"),
                *("cost_daily.request_pico", "cost_hourly.request_pico"),
            },
        ),
        ("DELETE FROM ledger_entries WHERE kind = 'write_off'", None),
        ("DELETE FROM ledger_entries WHERE kind = 'reserve' AND held_pico = 100", None),
        (
            "UPDATE ledger_entries SET unknown_pico = 1 WHERE kind = 'write_off'",
            {"account.written_off_unknown_pico", "resolution.unknown_pico"},
        ),
        (
            "UPDATE ledger_entries SET held_pico = 90 WHERE kind = 'void'",
            {
                *("account.reserved_pico", "counter.reserved_pico", "resolution.held_pico"),
                "counter.short_reserved_pico",
            },
        ),
        (
            "UPDATE ledger_entries SET delivered_tokens = 6 WHERE posted_pico = 60",
            {"resolution.delivered_tokens"},
        ),
        (
            "UPDATE ledger_entries SET delivered_tokens = 1 WHERE kind = 'void'",
            {"resolution.delivered_tokens"},
        ),
        (
            (
                "UPDATE ledger_entries SET delivered_tokens = 1, operator_pays = 'backend_failed'"
                " WHERE kind = 'void'"
            ),
            {"resolution.delivered_tokens"},
        ),
        (
            (
                "UPDATE ledger_entries SET posted_pico = 100, input_pico = input_pico + 40,"
                " excess_pico = 1 WHERE kind = 'post' AND held_pico = 100"
            ),
            {
                *(
                    "account.settled_pico",
                    "counter.settled_pico",
                    "counter.short_settled_pico",
                    "account.written_off_excess_pico",
                ),
                *("cost_daily.input_pico", "cost_hourly.input_pico", "resolution.unpaid_pico"),
            },
        ),
        (
            "UPDATE ledger_entries SET is_estimated = true WHERE kind = 'post' AND held_pico = 100",
            {"cost_daily.estimated_requests", "cost_hourly.estimated_requests"},
        ),
        (
            "UPDATE cost_daily SET estimated_requests = 1 WHERE day > current_date - 10",
            {"cost_daily.estimated_requests"},
        ),
        (
            "UPDATE ledger_closings SET estimated_requests = 1",
            {"cost_daily.estimated_requests", "cost_hourly.estimated_requests"},
        ),
        ("DELETE FROM unsettled_holds", None),
        ("UPDATE unsettled_holds SET held_pico = 1", {"unsettled.held_pico"}),
        (
            (
                "INSERT INTO unsettled_holds SELECT organization_id, admitted_day, reservation_id,"
                " held_pico, admitted_at, project_id, api_key_id, now(), now()"
                " FROM ledger_entries WHERE kind = 'void'"
            ),
            {"unsettled.held_pico"},
        ),
        (
            (
                "UPDATE ledger_entries SET deadline_at = now() - interval '3 minutes'"
                " WHERE held_pico = 11"
            ),
            {"hold.overdue_pico"},
        ),
    ],
)
@pytest.mark.tampers
async def test_tampering_is_found(
    ledger: DirectLedger, tampering: str, names: set[str] | None
) -> None:
    await ledger.tamper(tampering)
    if tampering == "DELETE FROM unsettled_holds":
        await ledger.tamper(
            "UPDATE ledger_entries SET deadline_at = now() - interval '3 minutes'"
            " WHERE held_pico = 13"
        )

    found = await differences(ledger)

    assert found
    assert names is None or set(found) == names


@pytest.mark.tampers
async def test_a_difference_says_what_is_expected_and_what_is_found(ledger: DirectLedger) -> None:
    await ledger.tamper("UPDATE accounts SET settled_pico = 1 WHERE settled_pico = 600")

    assert await differences(ledger) == {"account.settled_pico": (600, 1)}


@pytest.mark.tampers
async def test_one_organization_is_verified_without_the_others(
    ledger: DirectLedger, other_org: OrganizationFixture
) -> None:
    await open_ledger(other_org, ledger.url)
    await ledger.tamper(
        "UPDATE accounts SET written_off_excess_pico = 1 WHERE organization_id = $1",
        other_org.organization_id,
    )

    assert await differences(ledger) == {}
    with pytest.raises(AssertionError):
        await assert_conserved(ledger.org.database)


@pytest.mark.parametrize("rule", [OperatorPays.WORKER_LOST, OperatorPays.ABOVE_HOLD])
@pytest.mark.tampers
async def test_delivered_tokens_that_a_rule_lets_the_operator_pay_for_are_no_difference(
    ledger: DirectLedger, rule: OperatorPays
) -> None:
    await ledger.tamper(
        "UPDATE ledger_entries SET delivered_tokens = 6, operator_pays = $1"
        " WHERE kind = 'post' AND held_pico = 100",
        rule,
    )

    assert await differences(ledger) == {}


@pytest.mark.tampers
async def test_entries_from_before_the_count_of_delivered_tokens_are_not_judged_by_it(
    ledger: DirectLedger,
) -> None:
    await ledger.tamper("UPDATE ledger_entries SET delivered_tokens = NULL, output_tokens = 0")

    found = await differences(ledger)

    assert set(found) == {"cost_daily.output_tokens", "cost_hourly.output_tokens"}


@pytest.mark.tampers
async def test_a_missing_charge_is_told_with_what_was_delivered(ledger: DirectLedger) -> None:
    await ledger.tamper("UPDATE ledger_entries SET delivered_tokens = 9 WHERE kind = 'void'")

    assert await differences(ledger) == {"resolution.delivered_tokens": (0, 9)}
