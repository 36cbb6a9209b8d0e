"""The commands of deploy/compose.yaml, in their order, against real servers."""

import re
import secrets
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import ROOT, Operator, call, free_port
from tests.cli.documents import read, scripts

MOUNT = "/run/tollhouse"
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ADMIN_KEY = re.compile(r"^export TOLLHOUSE_ADMIN_KEY=(\S+)$", re.MULTILINE)
PROJECT_KEY = re.compile(r"^export TOLLHOUSE_PROJECT_KEY=(\S+)$", re.MULTILINE)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o700)
    return folder


def run(service: str, operator: Operator, volume: Path) -> None:
    """Run the command of a service that ends, with its volume in another place."""
    declared = SERVICES[service]
    assert declared["entrypoint"] == ["/bin/sh", "-euc"]
    (script,) = declared["command"]
    placed = script.replace("$$", "$").replace(MOUNT, str(volume))
    beside = f"{Path(sys.executable).parent}:{operator.environment['PATH']}"
    operator.shell([*declared["entrypoint"], placed], {"PATH": beside})


def in_place(volume: Path) -> dict[str, str]:
    """The variables of the gateway, with its paths and its Redis on this machine."""
    declared: dict[str, str] = SERVICES["gateway"]["environment"]
    settings = ROOT / "deploy" / "tollhouse.toml"
    return {
        **{name: value.replace(MOUNT, str(volume)) for name, value in declared.items()},
        "TOLLHOUSE_CONFIG": str(settings),
        "TOLLHOUSE_REDIS__URL": "redis://127.0.0.1:6379/0",
        "TOLLHOUSE_SERVER__PORT": str(free_port()),
        "TOLLHOUSE_SERVER__PROBE_PORT": str(free_port()),
        "TOLLHOUSE_SERVER__WORKERS": "1",
    }


@pytest.mark.nightly
def test_it_starts_from_nothing_and_again(newcomer: Operator, volume: Path, fresh_url: str) -> None:
    run("secrets", newcomer, volume)
    written = {path.name: path.read_text().strip() for path in volume.iterdir()}
    password = written["database-password"]
    assert written["database-url"] == f"postgresql://tollhouse:{password}@database:5432/tollhouse"
    assert len({password, written["master"]}) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in volume.iterdir()} == {0o600}

    run("secrets", newcomer, volume)
    assert {path.name: path.read_text().strip() for path in volume.iterdir()} == written

    (volume / "database-url").write_text(fresh_url)
    newcomer.environment.update(in_place(volume))
    run("setup", newcomer, volume)
    first_keys = volume / "first-keys"
    keys = first_keys.read_text()
    (admin_key,), (project_key,) = ADMIN_KEY.findall(keys), PROJECT_KEY.findall(keys)
    newcomer.secrets.extend([written["master"], admin_key, project_key])
    assert stat.S_IMODE(first_keys.stat().st_mode) == 0o600

    first_keys.unlink()
    run("setup", newcomer, volume)
    assert not first_keys.exists()
    with newcomer.serving():
        shown = newcomer.bash(
            f'curl --fail --silent --header "Authorization: Bearer {admin_key}" '
            '"http://127.0.0.1:$TOLLHOUSE_SERVER__PORT/v1/organization/admin_api_keys"'
        )
    assert "made by tollhouse init" in shown.stdout


def test_an_interrupted_generation_is_repeated(newcomer: Operator, volume: Path) -> None:
    (volume / "database-password").write_text("of an interrupted start")

    run("secrets", newcomer, volume)

    assert (volume / "master").read_text().strip()
    assert (volume / "database-password").read_text() != "of an interrupted start"


def test_init_with_an_existing_configuration_writes_no_file(
    newcomer: Operator, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLLHOUSE_DATABASE__URL", fresh_url)
    monkeypatch.setenv("TOLLHOUSE_SECRETS__MASTER", secrets.token_urlsafe(48))
    monkeypatch.chdir(newcomer.directory)

    call("init", "--existing-config")

    assert list(newcomer.directory.iterdir()) == []


def test_the_secrets_of_an_overlay_are_made_as_the_guide_says(newcomer: Operator) -> None:
    (generate,) = scripts(read("docs/guides/containers.md"))
    overlay = yaml.safe_load(read("deploy/kubernetes/overlays/evaluation/kustomization.yaml"))

    newcomer.bash(generate)

    needed = {name for generator in overlay["secretGenerator"] for name in generator["files"]}
    folder = newcomer.directory
    made = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    password = (folder / "secrets" / "database-password").read_text()
    assert made == needed
    assert f":{password}@tollhouse-postgresql:" in (folder / "secrets" / "database-url").read_text()


def test_everything_waits_for_what_it_needs() -> None:
    done, healthy = "service_completed_successfully", "service_healthy"

    assert SERVICES["database"]["depends_on"]["secrets"]["condition"] == done
    assert SERVICES["setup"]["depends_on"]["database"]["condition"] == healthy
    assert SERVICES["gateway"]["depends_on"]["setup"]["condition"] == done


def test_the_gateway_can_write_nothing_but_its_secrets_and_tmp() -> None:
    for name in ("secrets", "setup", "gateway"):
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108 - of a container
