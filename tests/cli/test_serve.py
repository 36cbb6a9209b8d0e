"""`tollhouse serve`: what it refuses to begin with, and what it takes from its options."""

import socket
from pathlib import Path

import pytest

from tests.cli.commands import Operator, free_port
from tollhouse.cli.main import tollhouse
from tollhouse.settings import InvalidSettings

GOOD = "a secret of forty characters, 0123456789"


def with_secrets(path: Path, master: str, pepper: str) -> Path:
    path.write_text(
        '[database]\nurl = "postgresql://127.0.0.1/nothing"\n'
        f'[secrets]\nmaster = "{master}"\n[secrets.peppers]\n1 = "{pepper}"\n'
    )
    return path


@pytest.mark.guarantee("T45")
@pytest.mark.parametrize("weak", ["", "short", "ab" * 32, "x" * 64])
def test_weak_secrets_are_refused_before_anything_listens(tmp_path: Path, weak: str) -> None:
    for master, pepper in ((weak, GOOD), (GOOD, weak)):
        path = with_secrets(tmp_path / "tollhouse.toml", master, pepper)

        with pytest.raises(InvalidSettings, match="too weak"):
            tollhouse.main(["--config", str(path), "serve"], standalone_mode=False)


def test_the_refusal_ends_the_command_and_does_not_show_the_secret(newcomer: Operator) -> None:
    newcomer.secrets.append(GOOD)
    with_secrets(newcomer.settings_path, GOOD, GOOD)

    refused = newcomer.run("serve", exit_code=1)

    assert refused.stdout == ""
    assert "must differ" in refused.stderr


def test_a_missing_configuration_says_where_to_get_one(newcomer: Operator) -> None:
    assert "tollhouse init" in newcomer.run("serve", exit_code=1).stderr


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
