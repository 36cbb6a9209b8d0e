"""The commands of the runbooks, on a deployment with one organization."""

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts

RUNBOOKS = {
    "docs/runbooks/TollhouseAlertsUndelivered.md": "last_error",
    "docs/runbooks/TollhouseClockDiffers.md": "the database's clock differs",
    "docs/runbooks/TollhouseCommitsUnprotected.md": "synchronous_commit is on",
    "docs/runbooks/TollhouseCountsAlone.md": "redis",
    "docs/runbooks/TollhouseDatabaseDown.md": "the server is a primary",
    "docs/runbooks/TollhouseDatabaseIsStandby.md": "the server is a primary",
    "docs/runbooks/TollhouseDiskFills.md": "the database has",
    "docs/runbooks/TollhouseFails.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseHistoryLost.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseJobsFail.md": "job leases",
    "docs/runbooks/TollhouseJudgeFails.md": "judge",
    "docs/runbooks/TollhouseLedgerDiffers.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseLedgerNotVerified.md": "job leases",
    "docs/runbooks/TollhouseModelUnserved.md": "backends: 0",
    "docs/runbooks/TollhouseNoSpareStandby.md": "standbys",
    "docs/runbooks/TollhousePartitionsMissing.md": "ledger days",
    "docs/runbooks/TollhousePaysItself.md": "written_off",
    "docs/runbooks/TollhousePoolerDropsSettings.md": "pooling",
    "docs/runbooks/TollhouseReloadFailed.md": "settings",
    "docs/runbooks/TollhouseReplicaNotRead.md": "the primary answers all reads",
    "docs/runbooks/TollhouseReplicasAvoided.md": "backends: 0",
    "docs/runbooks/TollhouseResolutionsSetAside.md": "Every number follows from its entries",
    "docs/runbooks/TollhouseSnapshotHeld.md": "the oldest is",
    "docs/runbooks/TollhouseStandbysMissing.md": "none is synchronous",
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
