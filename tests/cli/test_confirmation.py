"""What cannot be undone is asked for, or said beforehand."""

from uuid import uuid4

import pytest

from tests.cli.commands import Operator, at_a_terminal, refusal
from tollhouse.cli.organizations.org import create_organization

DESTRUCTIVE = [
    ("org", "close"),
    ("project", "archive"),
    ("key", "revoke"),
    ("admin-key", "revoke"),
    ("ledger", "settle", "--amount", "1", "--reason", "a test"),
    ("ledger", "release", "--reason", "a test"),
]


@pytest.mark.parametrize("verb", DESTRUCTIVE)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_who_cannot_be_asked_must_say_yes(verb: tuple[str, ...], form: tuple[str, ...]) -> None:
    assert "Pass --yes" in refusal(*verb, str(uuid4()), *form)


def test_saying_nothing_is_a_usage_error(operator: Operator) -> None:
    refused = operator.run("org", "close", str(uuid4()), "--json", exit_code=2)

    assert refused.error["code"] == "usage"


def test_at_a_terminal_the_answer_decides(operator: Operator) -> None:
    made = operator.do(lambda session: create_organization(session, "Example Ltd")).id

    assert at_a_terminal(operator, ["org", "close", str(made)], "n").exit_code == 1
    assert operator.do(lambda session: session.organization(made)).status == "active"
    assert at_a_terminal(operator, ["org", "close", str(made)], "y").exit_code == 0
    assert operator.do(lambda session: session.organization(made)).status == "closed"
