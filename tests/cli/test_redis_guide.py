"""The guide to Sentinel and Cluster, with real ones, and what `tollhouse doctor` says of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.support.redis_groups import Group, running_cluster, running_sentinels


@pytest.fixture(scope="module")
def sentinels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    with running_sentinels(tmp_path_factory.mktemp("sentinels"), replicas=1) as group:
        yield group


def findings(operator: Operator, url: str, *, exit_code: int = 0) -> dict[str, dict[str, str]]:
    operator.environment["TOLLHOUSE_REDIS__URL"] = url
    found = operator.json("doctor", exit_code=exit_code)["data"]
    return {each["check"]: each for each in found}


def test_the_guide_checks_sentinels(patient: Operator, sentinels: Group) -> None:
    (check,) = scripts(read("docs/guides/redis.md"))
    patient.environment["TOLLHOUSE_REDIS__URL"] = sentinels.url

    shown = " ".join(patient.bash(check).stdout.split())

    assert "redis failover" in shown
    assert "3 Sentinels answer" in shown


def test_silent_sentinels_and_missing_replicas_are_warnings(
    patient: Operator, sentinels: Group
) -> None:
    sentinels.sentinels[0].kill()
    silent = findings(patient, sentinels.url)["redis failover"]
    sentinels.sentinels[0].start()
    replica = next(node for node in sentinels.servers if node is not sentinels.master())
    replica.kill()
    alone = findings(patient, sentinels.url)["redis failover"]

    assert silent["outcome"] == alone["outcome"] == "warning"
    assert f"1 of 3 Sentinels do not answer: {sentinels.sentinels[0].address}" in silent["found"]
    assert alone["found"] == f"no replica is connected to {sentinels.master().address}"


def test_every_node_of_a_cluster_is_asked(patient: Operator, tmp_path: Path) -> None:
    with running_cluster(tmp_path, replicas=0) as cluster:
        healthy = findings(patient, cluster.url)["redis failover"]
        cluster.servers[2].kill()
        broken = findings(patient, cluster.url, exit_code=1)["redis"]

    assert healthy["found"].startswith("no replica is connected to")
    assert broken["outcome"] == "failure"
    assert cluster.servers[2].address in broken["found"]


def test_a_service_that_sentinels_do_not_know_is_named(patient: Operator, sentinels: Group) -> None:
    mistaken = sentinels.url.replace("/tollhouse/0", "/mistaken/0")

    found = findings(patient, mistaken, exit_code=1)["redis"]

    assert found["outcome"] == "failure"
    assert "No such master with that name" in found["found"]
