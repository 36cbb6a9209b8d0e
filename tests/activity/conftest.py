"""What every kind of test of activity may use."""

import pytest

from tests.activity.records import Customer, stranger


@pytest.fixture
def customer() -> Customer:
    return stranger()
