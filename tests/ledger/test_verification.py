"""`verify` finds whatever does not follow from grants and entries, and nothing else."""

from datetime import timedelta

import pytest

from tests.ledger.invariants import assert_conserved
from tests.ledger.past import days_ago, enter_past
from tests.ledger.till import Till, open_till
from tests.support.world import World
from tollhouse.ledger import partitions, reaper, verification
from tollhouse.ledger.types import Charge, OperatorPays, ResolutionKind


@pytest.fixture
async def till(world: World, database_url: str) -> Till:
    """With one hold of each kind of end, an open one, an unsettled one, and a closed day."""
    till = await open_till(world, database_url)
    await enter_past(till, days_ago(40), 500)
    await enter_past(till, days_ago(20), 40)
    await partitions.remove_old(world.database, entry_days=30)
    await till.post(await till.hold(100), 60)
    await till.void(await till.hold(100))
    await till.resolve(await till.hold(100), ResolutionKind.ABSORB, Charge())
    await till.hold(11)
    overdue = await till.hold(13)
    await till.let_pass(overdue, timedelta(seconds=70))
    await reaper.run(world.database)
    assert await till.unsettled() == {overdue.reservation_id}
    return till


async def differences(till: Till) -> dict[str, tuple[int | None, int | None]]:
    found = await verification.verify(till.world.database, till.world.organization_id)
    return {difference.name: (difference.expected, difference.found) for difference in found}


async def test_a_sound_ledger_has_no_differences(till: Till) -> None:
    await assert_conserved(till.world.database)


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
        ("UPDATE accounts SET absorbed_excess_pico = 1", {"account.absorbed_excess_pico"}),
        ("UPDATE accounts SET absorbed_unknown_pico = 1", {"account.absorbed_unknown_pico"}),
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
                "cost_hourly.request_pico",
            },
        ),
        (
            "UPDATE ledger_closings SET request_pico = request_pico + 1",
            {
                *("account.settled_pico", "counter.settled_pico"),
                *("cost_daily.request_pico", "cost_hourly.request_pico"),
            },
        ),
        ("DELETE FROM ledger_entries WHERE kind = 'absorb'", None),
        ("DELETE FROM ledger_entries WHERE kind = 'reserve' AND held_pico = 100", None),
        (
            "UPDATE ledger_entries SET unknown_pico = 1 WHERE kind = 'absorb'",
            {"account.absorbed_unknown_pico", "resolution.unknown_pico"},
        ),
        (
            "UPDATE ledger_entries SET held_pico = 90 WHERE kind = 'void'",
            {"account.reserved_pico", "counter.reserved_pico", "resolution.held_pico"},
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
                *("account.settled_pico", "counter.settled_pico", "account.absorbed_excess_pico"),
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
async def test_tampering_is_found(till: Till, tampering: str, names: set[str] | None) -> None:
    await till.tamper(tampering)
    if tampering == "DELETE FROM unsettled_holds":
        await till.tamper(
            "UPDATE ledger_entries SET deadline_at = now() - interval '3 minutes'"
            " WHERE held_pico = 13"
        )

    found = await differences(till)

    assert found
    assert names is None or set(found) == names


@pytest.mark.tampers
async def test_a_difference_says_what_is_expected_and_what_is_found(till: Till) -> None:
    await till.tamper("UPDATE accounts SET settled_pico = 1 WHERE settled_pico = 600")

    assert await differences(till) == {"account.settled_pico": (600, 1)}


@pytest.mark.tampers
async def test_one_organization_is_verified_without_the_others(
    till: Till, other_world: World
) -> None:
    await open_till(other_world, till.url)
    await till.tamper(
        "UPDATE accounts SET absorbed_excess_pico = 1 WHERE organization_id = $1",
        other_world.organization_id,
    )

    assert await differences(till) == {}
    with pytest.raises(AssertionError):
        await assert_conserved(till.world.database)


@pytest.mark.parametrize("rule", [OperatorPays.WORKER_LOST, OperatorPays.ABOVE_HOLD])
@pytest.mark.tampers
async def test_delivered_tokens_that_a_rule_lets_the_operator_pay_for_are_no_difference(
    till: Till, rule: OperatorPays
) -> None:
    await till.tamper(
        "UPDATE ledger_entries SET delivered_tokens = 6, operator_pays = $1"
        " WHERE kind = 'post' AND held_pico = 100",
        rule,
    )

    assert await differences(till) == {}


@pytest.mark.tampers
async def test_entries_from_before_the_count_of_delivered_tokens_are_not_judged_by_it(
    till: Till,
) -> None:
    await till.tamper("UPDATE ledger_entries SET delivered_tokens = NULL, output_tokens = 0")

    found = await differences(till)

    assert set(found) == {"cost_daily.output_tokens", "cost_hourly.output_tokens"}


@pytest.mark.tampers
async def test_a_missing_charge_is_told_with_what_was_delivered(till: Till) -> None:
    await till.tamper("UPDATE ledger_entries SET delivered_tokens = 9 WHERE kind = 'void'")

    assert await differences(till) == {"resolution.delivered_tokens": (0, 9)}
