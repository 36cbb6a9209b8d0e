"""The commands of the runbooks, on a deployment with one organization."""

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts

RUNBOOKS = {
    "docs/runbooks/TollhouseCountsAlone.md": "redis",
    "docs/runbooks/TollhouseFails.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseJobsFail.md": "job leases",
    "docs/runbooks/TollhousePaysItself.md": "balance",
    "docs/runbooks/TollhouseReplicasAvoided.md": "backends: 0",
    "docs/runbooks/TollhouseResolutionsSetAside.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseUnavailable.md": "judge",
    "docs/runbooks/TollhouseUnsettled.md": "workers",
}
"""What the commands of each show, among other things."""


@pytest.fixture(scope="module", autouse=True)
def _organization(operator: Operator) -> None:
    operator.run("org", "create", "Example Ltd")


@pytest.mark.parametrize(("page", "shown"), RUNBOOKS.items())
def test_commands_of_a_runbook_show_what_it_speaks_of(
    operator: Operator, page: str, shown: str
) -> None:
    (script,) = scripts(read(page))

    assert shown in operator.bash(script).stdout
