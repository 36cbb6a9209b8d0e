"""No function finds or touches what another organization has, whatever it is given.

Every function that runs SQL for one organization is called in the name of a stranger with all
that a tenant has: its IDs, its records, its caps. The same calls on a copy of the database in
which the tenant never was must have the same outcomes. Calls in the tenant's own name must not:
else the arguments would prove nothing.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support import seeds
from tests.tenancy import scoped_functions
from tests.tenancy.parties import Parties, meeting
from tools.checks import tenancy
from tools.checks.source import read

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.asyncio(loop_scope="module")

EXEMPT = {
    "activity.search._search": "takes its statement; `search` calls it with each of them",
    **dict.fromkeys(
        (
            "ledger.moving.set_frozen",
            "organizations.moves.change",
            "organizations.moves.change_elsewhere",
        ),
        "a step of a move; tests/cells runs it beside a neighbour that is not frozen",
    ),
    "ledger.write_offs._write_off_apart": "writes by `ledger.batches.settle`",
    "ledger.write_offs._write_off_together": "writes by `ledger.batches.settle`",
}
"""Functions that are not called, with the reason."""
SAME_FOR_ALL = {
    "storage.audit.recorded": "no change of theirs was made by a request",
    "organizations.store.insert": "refuses the ID of every organization that exists",
}
"""Functions whose outcome for the tenant is the stranger's, with the reason."""
_MOVED = "moves all of an organization; tests/cells compares what its neighbour has"
NOT_FOUND = {
    "cli.moves.tables.lines_of": _MOVED,
    "cli.moves.tables.replace": _MOVED,
    "ledger.verifier.verify": "stores what `ledger.verification.verify_new` found",
}
"""Functions and methods with SQL of tenants outside the modules whose functions are called."""
FUNCTIONS = {function.name: function for function in scoped_functions.found()}
CALLED = [name for name in FUNCTIONS if name not in EXEMPT]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def parties(migrated_template: str) -> AsyncIterator[Parties]:
    async with meeting(migrated_template) as met:
        yield met


@pytest.mark.guarantee("T13")
@pytest.mark.parametrize("name", seeds.partly_nightly(CALLED, at_landings=len(CALLED) // 4))
async def test_a_stranger_finds_and_touches_nothing_of_a_tenant(
    parties: Parties, name: str
) -> None:
    function = FUNCTIONS[name]
    places = parties.places(function)
    found = await parties.strangers(places.together, function)

    assert [outcome.touched for outcome in found] == [frozenset()] * len(found)
    assert found == await parties.strangers(places.alone, function)
    assert await parties.is_of_use(function, found) is (function.name not in SAME_FOR_ALL)


async def test_every_function_with_sql_of_tenants_is_called() -> None:
    sources = list(read(ROOT))
    tenants = tenancy.tenancy(sources)
    with_sql = {
        ".".join((*(part for part in source.module if part != "__init__"), function.name))
        for source in sources
        for function, is_exempt in tenancy.functions(source, tenants)
        if not is_exempt
    }

    assert with_sql - FUNCTIONS.keys() <= NOT_FOUND.keys()


async def test_every_exemption_is_of_a_function_that_exists() -> None:
    assert EXEMPT.keys() | SAME_FOR_ALL.keys() <= FUNCTIONS.keys()
