"""What every test of the archive may use."""

import pytest

from tests.activity.records import Customer, stranger


@pytest.fixture
def customer() -> Customer:
    return stranger()
