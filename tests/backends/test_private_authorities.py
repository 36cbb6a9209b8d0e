"""Engines whose certificates come from an authority that the system does not know."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.backends.conftest import Build
from tests.backends.test_failover import ASK_BESIDE_FALLBACK, FAILURES_MAX, failure
from tests.backends.wire import Upstream, running_upstream
from tests.support.certificates import Certificates, make_certificates
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.errors import BackendUnreachable
from tollhouse.backends.health import probe
from tollhouse.backends.transport import Transport


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path / "engine")


@pytest.fixture
async def tls_upstream(certificates: Certificates) -> AsyncIterator[Upstream]:
    async with running_upstream(certificates.server_context()) as running:
        yield running


@pytest.fixture
async def trusting(certificates: Certificates) -> AsyncIterator[Transport]:
    transport = Transport(certificates.authority.read_text("ascii"))
    yield transport
    await transport.close()


def other_authority(tmp_path: Path) -> str:
    return make_certificates(tmp_path / "other").authority.read_text("ascii")


async def test_an_engine_of_a_private_authority_answers_who_names_it(
    build: Build, tls_upstream: Upstream, trusting: Transport
) -> None:
    backend = build(tls_upstream, over=trusting)

    answers = [await backend.complete(ASK_BESIDE_FALLBACK) for _ in range(2)]

    assert {replica for _, replica in answers} == {tls_upstream.name}
    assert tls_upstream.connections == 1


async def test_a_failure_of_tls_counts_against_the_replica(
    build: Build, tls_upstream: Upstream, transport: Transport, trusting: Transport
) -> None:
    """Also beside a backend that may call the same engine, and has a connection to it."""
    await build(tls_upstream, over=trusting).complete(ASK_BESIDE_FALLBACK)
    backend = build(tls_upstream, over=transport)

    failures = [await failure(backend, ASK_BESIDE_FALLBACK) for _ in range(FAILURES_MAX)]

    assert {type(each) for each in failures} == {BackendUnreachable}
    assert not backend.is_ready("m")
    assert len(tls_upstream.received) == 1


async def test_the_reason_is_told_to_the_operator(
    certificates: Certificates, tls_upstream: Upstream, tmp_path: Path
) -> None:
    async def told(authority: str | None, url: str = tls_upstream.url) -> str | None:
        return await probe(
            url, "/health", headers=(), seconds=TIMEOUT_SECONDS, ca_certificates=authority
        )

    authority = certificates.authority.read_text("ascii")
    refused = "has a certificate that was refused: "
    # A second spelling of the address, which the certificate does not have.
    misnamed = tls_upstream.url.replace("127.0.0.1", "127.1")

    assert await told(authority) is None
    assert await told(None) == f"{refused}unable to get local issuer certificate"
    assert (await told(other_authority(tmp_path)) or "").startswith(refused)
    assert await told(authority, misnamed) == (
        f"{refused}Hostname mismatch, certificate is not valid for '127.1'"
    )
