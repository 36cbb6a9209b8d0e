"""TLS, users and passwords: one server, Sentinels and a cluster, as the guide sets them up."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.limits.gates import Caller, at_once, gate
from tests.limits.test_failover import assert_counted_together
from tests.limits.test_redis_lost import lines
from tests.support.certificates import Certificates, make_certificates
from tests.support.redis_groups import (
    PASSWORD,
    SENTINEL_PASSWORD,
    Group,
    running_cluster,
    running_sentinels,
    running_server,
)


def smallest_sentinels(directory: Path, tls: Certificates) -> AbstractContextManager[Group]:
    return running_sentinels(directory, tls, replicas=1)


def smallest_cluster(directory: Path, tls: Certificates) -> AbstractContextManager[Group]:
    return running_cluster(directory, tls, replicas=0)


KINDS: dict[str, Callable[[Path, Certificates], AbstractContextManager[Group]]] = {
    "rediss": running_server,
    "rediss+sentinel": smallest_sentinels,
    "rediss+cluster": smallest_cluster,
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=KINDS)
def group(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    certificates: Certificates,
) -> Iterator[Group]:
    with KINDS[request.param](tmp_path_factory.mktemp("redis"), certificates) as running:
        assert running.url.startswith(f"{request.param}://")
        yield running


async def test_workers_count_together_over_tls(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    await assert_counted_together(group.url)

    assert lines(caplog) == []


async def reason_for(url: str, caplog: pytest.LogCaptureFixture) -> str:
    """Why a worker counts alone with this URL."""
    async with gate(url) as door:
        await door.limiter.renew_leases()
        await door.limiter.enter(Caller(organization=at_once(1)).request())
    return lines(caplog)[0].__dict__["reason"]


async def test_a_certificate_of_an_unknown_authority_is_refused(
    group: Group, tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    other = make_certificates(tmp_path)
    url = group.url.replace(str(certificates.authority), str(other.authority))

    assert "certificate verify failed" in await reason_for(url, caplog)


async def test_a_wrong_password_is_refused_and_not_logged(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    reason = await reason_for(group.url.replace(PASSWORD, "mistaken"), caplog)

    assert "invalid username-password pair" in reason
    assert "mistaken" not in caplog.text


async def test_plain_text_is_not_understood(
    group: Group, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    url = group.url.replace("rediss", "redis").replace(str(certificates.authority), "")
    url = url.replace("&ssl_ca_certs=", "").replace("?ssl_ca_certs=", "")

    assert "Connection" in await reason_for(url, caplog)
    assert SENTINEL_PASSWORD not in caplog.text
