"""PostgreSQL with a certificate of a private authority: who connects, and what others are told."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.cli.commands import Operator
from tests.cli.conftest import deployed
from tests.storage.cluster import Cluster, running_cluster
from tests.support.certificates import Certificates, make_certificates

REPLICA = "TOLLHOUSE_DATABASE__REPLICA_URL"
REFUSED = "its certificate was refused: "
MISNAMED = "127.1"
"""A second spelling of the address, which the certificate does not have."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def cluster(certificates: Certificates) -> AsyncIterator[Cluster]:
    async with running_cluster(certificates) as running:
        yield running


def url_of(cluster: Cluster, authority: Path, *hosts: str, sslmode: str = "verify-full") -> str:
    listed = ",".join(f"{host}:{cluster.port}" for host in hosts or ("127.0.0.1",))
    return f"postgresql://postgres@{listed}/postgres?sslmode={sslmode}&sslrootcert={authority}"


@pytest.fixture
def secured(cluster: Cluster, certificates: Certificates, newcomer: Operator) -> Operator:
    url = url_of(cluster, certificates.authority)
    return deployed(url, newcomer.directory, newcomer.environment)


def found_by_doctor(operator: Operator, **environment: str) -> dict[str, Any]:
    operator.environment.update(environment)
    report = operator.json("doctor", exit_code=1)
    return {finding["check"]: finding for finding in report["data"]}


def test_every_connection_trusts_the_authority_of_its_url(
    secured: Operator, cluster: Cluster, certificates: Certificates
) -> None:
    migrated = secured.json("migrate")
    listed = secured.json("org", "list")
    findings = found_by_doctor(secured, **{REPLICA: url_of(cluster, certificates.authority)})

    assert migrated["revision"] == migrated["contracted"]
    assert listed["data"] == []
    assert findings["database"]["outcome"] == findings["schema"]["outcome"] == "ok"
    assert findings["replica"]["found"].endswith("it is a primary, not a standby")


def test_another_authority_is_refused_by_the_database_and_by_the_standby(
    secured: Operator, cluster: Cluster, certificates: Certificates, tmp_path: Path
) -> None:
    other = make_certificates(tmp_path / "other").authority
    replica = found_by_doctor(secured, **{REPLICA: url_of(cluster, other)})["replica"]
    secured.environment["TOLLHOUSE_DATABASE__URL"] = url_of(cluster, other)
    refused = secured.run("migrate", "--json", exit_code=1).error
    database = found_by_doctor(secured)["database"]

    where = f"PostgreSQL at 127.0.0.1:{cluster.port} cannot be trusted: {REFUSED}"
    assert refused["code"] == "database_certificate_refused"
    assert refused["message"].startswith(where)
    assert "sslrootcert" in refused["message"]
    assert database["found"].startswith(where)
    assert REFUSED in replica["found"]


def test_a_host_that_the_certificate_does_not_name_is_refused_and_passed_over(
    secured: Operator, cluster: Cluster, certificates: Certificates
) -> None:
    authority = certificates.authority
    misnamed = url_of(cluster, authority, MISNAMED)
    unnamed = url_of(cluster, authority, MISNAMED, sslmode="verify-ca")
    beside = url_of(cluster, authority, MISNAMED, "127.0.0.1")

    refused = secured.run("migrate", exit_code=1, TOLLHOUSE_DATABASE__URL=misnamed).stderr
    for accepted in (unnamed, beside):
        secured.run("migrate", TOLLHOUSE_DATABASE__URL=accepted)

    assert f"{REFUSED}Hostname mismatch, certificate is not valid for '{MISNAMED}'. " in refused
