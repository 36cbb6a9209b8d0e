"""Holds of one batch count against the caps of those behind them."""

import pytest

from tests.ledger.money import Payer
from tests.ledger.sending import Form, send
from tests.ledger.shared_books import database, database_url, org, settings
from tests.ledger.shared_books import funded_spender as spender
from tests.support.spending import Spender
from tollhouse.ledger.rules import CAPS, FIRST_CAP_CODE
from tollhouse.ledger.types import AdmissionVerdict, CapScope, Hold, Period

__all__ = ["database", "database_url", "org", "settings", "spender"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMITTED: tuple[int, int, int] = (AdmissionVerdict.ADMITTED, 0, 0)


async def admit(spender: Spender, holds: list[Hold], form: Form) -> list[tuple[int, int, int]]:
    result = await send(spender.org.database, [], holds, form)
    return [
        (decision.code, decision.available_pico_usd, decision.held_pico_usd)
        for decision in result.decisions
        if decision is not None
    ]


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("period", Period)
@pytest.mark.parametrize("scope", CapScope)
async def test_a_cap_is_shared_by_the_holds_of_a_batch(
    spender: Spender, scope: CapScope, period: Period, form: Form
) -> None:
    await spender.set_cap(spender.place(scope, period), 100)
    own = Payer(spender.org.organization_id, spender.project_id, spender.api_key_id)
    same_project, other_project = own.with_other_key(), own.with_other_project()
    payers = [own, same_project, other_project, own, own, own]

    found = await admit(
        spender,
        [
            payer.hold(amount)
            for payer, amount in zip(payers, (30, 30, 30, 11, 71, 10), strict=True)
        ],
        form,
    )

    code = FIRST_CAP_CODE + CAPS.index((scope, period))
    held = {CapScope.ORGANIZATION: 90, CapScope.PROJECT: 60, CapScope.KEY: 30}[scope]
    expected = [ADMITTED, ADMITTED, ADMITTED]
    for amount in (11, 71, 10):
        if held + amount > 100:
            expected.append((code, 100 - held, held))
        else:
            expected.append(ADMITTED)
            held += amount
    assert found == expected
    (use,) = await spender.caps()
    assert use.reserved_pico_usd == held
