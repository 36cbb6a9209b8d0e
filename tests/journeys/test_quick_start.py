"""From an empty virtual environment and the built wheel to the first words of a real model."""

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SECONDS_MAX: Final = 180.0
TIMEOUT_SECONDS: Final = 600


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, timeout=TIMEOUT_SECONDS)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    """A newcomer's: no models and no settings in it."""
    yield tmp_path
    if (tmp_path / ".tollhouse").exists():
        shell(tmp_path, "tollhouse reset --yes")


def shell(home: Path, script: str, **variables: str) -> str:
    """What a newcomer's terminal shows; the first command that fails ends it."""
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{home}/venv/bin:{os.environ['PATH']}",
        **_of_the_machine(),
        **variables,
    }
    ended = subprocess.run(
        ["/bin/bash", "-eu", "-c", script],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended
    return ended.stdout


@pytest.mark.clock
def test_three_minutes_to_the_first_completion(
    wheel: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    venv.create(home / "venv", with_pip=True)
    locked = ROOT / "requirements" / "dev.txt"
    # The versions of the lock, without its hashes: the wheel was built just now and has none there.
    constraints = home / "constraints.txt"
    constraints.write_text("\n".join(_versions(locked)), encoding="utf-8")
    shell(home, f"pip install --quiet --constraint {constraints} '{wheel}[demo]'")
    made: dict[str, Any] = json.loads(shell(home, "tollhouse up --json"))
    keys = {
        "TOLLHOUSE_URL": made["base_url"],
        "TOLLHOUSE_PROJECT_KEY": made["keys"]["project_key"],
    }
    answer = json.loads(shell(home, made["commands"]["curl"], **keys))
    taken_seconds = time.monotonic() - begun

    with capsys.disabled():
        sys.stdout.write(f"\nfirst completion after {taken_seconds:.0f} s\n")
    assert made["engine"] == "demo"
    assert answer["choices"][0]["message"]["content"]
    assert taken_seconds < SECONDS_MAX
    assert shell(home, made["commands"]["python"], **keys).strip()
    assert shell(home, made["commands"]["node"], **keys).strip()


def _of_the_machine() -> dict[str, str]:
    """Where its packages come from, and whom it trusts."""
    kept = ("PIP_", "NPM_CONFIG_", "NODE_EXTRA_", "SSL_", "HTTP", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if name.upper().startswith(kept)}


def _versions(lock: Path) -> list[str]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line.rstrip(" \\") for line in lines if line[:1].isalnum()]
