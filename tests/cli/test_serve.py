"""`tollhouse serve`: what it refuses to begin with, and what it takes from its options."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.cli.commands import Operator, free_port
from tests.storage.tcp_proxy import TcpProxy
from tollhouse.cli.main import tollhouse
from tollhouse.settings import InvalidSettings

GOOD = "a secret of forty characters, 0123456789"


def with_secrets(path: Path, master: str) -> Path:
    path.write_text(
        f'[database]\nurl = "postgresql://127.0.0.1/nothing"\n[secrets]\nmaster = "{master}"\n'
    )
    return path


@pytest.mark.guarantee("T45")
@pytest.mark.parametrize("weak", ["", "short", "ab" * 32, "x" * 64])
def test_weak_secrets_are_refused_before_anything_listens(tmp_path: Path, weak: str) -> None:
    path = with_secrets(tmp_path / "tollhouse.toml", weak)

    with pytest.raises(InvalidSettings, match="too weak"):
        tollhouse.main(["--config", str(path), "serve"], standalone_mode=False)


def test_the_refusal_ends_the_command_and_does_not_show_the_secret(newcomer: Operator) -> None:
    weak = "a secret of words " * 3
    newcomer.secrets.append(weak)
    with_secrets(newcomer.settings_path, weak)

    refused = newcomer.run("serve", exit_code=1)

    assert refused.stdout == ""
    assert "too weak" in refused.stderr


def test_a_missing_configuration_says_where_to_get_one(newcomer: Operator) -> None:
    assert "tollhouse init" in newcomer.run("serve", exit_code=1).stderr


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("migrate",)], ids=lambda it: it[0])
def test_a_database_that_stays_away_ends_the_command(
    patient: Operator, command: tuple[str, ...]
) -> None:
    url = f"postgresql://root@127.0.0.1:{free_port()}/nothing"

    refused = patient.run(
        *command,
        exit_code=1,
        TOLLHOUSE_DATABASE__URL=url,
        TOLLHOUSE_DATABASE__START_SECONDS="0.5",
    )

    assert "cannot be reached" in refused.stderr
    assert "Waiting 0.5 s for it." in refused.stderr


async def test_a_database_that_is_away_is_awaited_while_probes_answer(
    patient: Operator, database_url: str
) -> None:
    server, probe_port = urlsplit(database_url), free_port()
    proxy = TcpProxy(str(server.hostname), int(server.port or 5432))
    url = database_url.replace(f":{server.port}/", f":{await proxy.start()}/")
    proxy.cut()
    process = await asyncio.create_subprocess_exec(
        *(patient.tollhouse, "serve"),
        cwd=patient.directory,
        env={
            **patient.environment,
            "TOLLHOUSE_DATABASE__URL": url,
            "TOLLHOUSE_SERVER__PROBE_PORT": str(probe_port),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None

    while b"Waiting 60 s" not in (line := await process.stderr.readline()):
        assert line, "it ended"
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{probe_port}") as probes:
        statuses = [(await probes.get(path)).status_code for path in ("/livez", "/readyz")]
        proxy.mend()
        ready = await process.stdout.readline()
        statuses.append((await probes.get("/readyz")).status_code)
    process.terminate()

    assert statuses == [200, 503, 200]
    assert b"tollhouse is ready" in ready
    assert await process.wait() == 0
    await proxy.stop()


def test_a_port_that_is_taken_is_said_to_be(patient: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])

        refused = patient.run("serve", "--port", port, exit_code=1)

    assert "Address already in use" in refused.stderr


UNCOMPILED = """
import atexit, os, pathlib, sys

def tell():
    places = (getattr(module, "__cached__", None) for module in list(sys.modules.values()))
    missing = [place for place in places if place and not os.path.exists(place)]
    pathlib.Path(f"{__file__}.{os.getpid()}.told").write_text(" ".join(missing))

atexit.register(tell)
"""


def test_options_win_over_the_configuration(patient: Operator) -> None:
    port, watch = free_port(), patient.directory / "sitecustomize.py"
    watch.write_text(UNCOMPILED, encoding="utf-8")
    patient.environment["PYTHONPATH"] += f":{patient.directory}"

    with patient.serving("--port", str(port), "--host", "127.0.0.2", "--workers", "1") as server:
        assert f"http://127.0.0.2:{port}," in server.announced

    assert server.events().count("worker_started") == 1
    # Supervisor and worker have left nothing to compile for the next that is started.
    assert [told.read_text() for told in watch.parent.glob("*.told")] == ["", ""]
