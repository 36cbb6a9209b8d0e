"""nginx twice: as an upstream whose answer never changes, and as a bare proxy."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench.support import processes
from tests.identity.waiting import until

NEVER: Final = 1_000_000_000
ENDING_SECONDS_MAX: Final = 30.0

_ONE_WORKER: Final = """
daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests {never};
    keepalive_timeout 600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""
_STATIC: Final = """
    server {{
        listen 127.0.0.1:{port};
        location / {{ default_type application/json; return 200 '{body}'; }}
    }}
"""
_PROXY: Final = """
    upstream behind_{port} {{
        server 127.0.0.1:{upstream_port};
        keepalive 256;
        keepalive_requests {never};
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://behind_{port};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering {buffering};
        }}
    }}
"""


def version() -> str:
    """Return the version that the program says."""
    done = subprocess.run(  # noqa: S603 - nothing in it comes from outside
        [_program(), "-v"], check=True, capture_output=True, text=True
    )
    return done.stderr.strip().rpartition("/")[2]


def static(port: int, body: str) -> str:
    """A server that says the same to everything."""
    return _STATIC.format(port=port, body=body)


def proxy(port: int, upstream_port: int, *, is_buffering: bool) -> str:
    """A server that passes everything on; streams must not wait in a buffer."""
    buffering = "on" if is_buffering else "off"
    return _PROXY.format(port=port, upstream_port=upstream_port, buffering=buffering, never=NEVER)


@asynccontextmanager
async def running(folder: Path, *servers: str) -> AsyncGenerator[int]:
    """Yields the process ID of the one worker."""
    configuration, errors = _configured(folder, servers)
    # The first lines of the log go where Debian has it, unless it is said here too.
    process = await asyncio.create_subprocess_exec(
        *(_program(), "-e", str(errors), "-p", str(folder), "-c", str(configuration))
    )

    async def has_begun() -> bool:
        assert process.returncode is None, f"nginx did not start: {errors.read_text()}"
        return bool(processes.children(process.pid))

    try:
        await until(has_begun)
        yield processes.children(process.pid)[0]
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), ENDING_SECONDS_MAX)


def _configured(folder: Path, servers: Sequence[str]) -> tuple[Path, Path]:
    """Where its configuration is, and where it complains."""
    folder.mkdir()
    configuration = folder / "nginx.conf"
    text = _ONE_WORKER.format(folder=folder, never=NEVER, servers="".join(servers))
    configuration.write_text(text, encoding="utf-8")
    return configuration, folder / "error.log"


def _program() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert found is not None, "nginx is not installed: apt-get install nginx-light"
    return found
