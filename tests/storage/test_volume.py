"""What a request costs the database does not grow with the data in it."""

import pytest

from bench.support.volume import Volume
from bench.volume import compared


@pytest.mark.nightly
async def test_no_statement_of_a_request_costs_more_with_much_data() -> None:
    found = await compared(Volume(organizations=500, requests_per_day=200, days=30))

    assert {name: each for name, each in found.items() if not each.is_held} == {}
    assert max(each.loaded.partitions for each in found.values()) == 1
