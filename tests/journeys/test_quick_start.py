"""From an empty folder and the built wheel to the first words of a real model."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.documents import read, scripts
from tollhouse.testing.model_file import cache_folder, model_file

ROOT: Final = Path(__file__).parents[2]
README: Final = read("README.md")
INSTALL: Final = re.compile(r"^```\n(?P<script>[^`]*pip install[^`]*)^```$", re.MULTILINE)
RELEASED: Final = re.compile(r"\./(tollhouse-[\w.-]+\.whl)")
EXPORT: Final = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)
PROGRAMS: Final = re.compile(r"^(?:pip|npm) install openai\n.*?^END$", re.MULTILINE | re.DOTALL)
SECONDS_MAX: Final = 60.0
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
        "PATH": f"{home}/tollhouse/bin:{os.environ['PATH']}",
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
@pytest.mark.nightly
def test_a_minute_from_nothing_to_the_first_answer_by_the_words_of_the_readme(
    wheel: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the packages and the model at hand: downloads depend on the network."""
    install = INSTALL.search(README)
    assert install is not None
    up, look, _ = scripts(README)[:3]
    (home / RELEASED.findall(install["script"])[0]).symlink_to(wheel)
    constraints = home / "constraints.txt"
    constraints.write_text(
        "\n".join(_versions(ROOT / "requirements" / "dev.txt")), encoding="utf-8"
    )
    at_hand = {"PIP_CONSTRAINT": str(constraints), "XDG_CACHE_HOME": str(cache_folder().parent)}
    model_file()

    begun = time.monotonic()
    shell(home, install["script"], **at_hand)
    printed = shell(home, up, **at_hand)
    exported = dict(EXPORT.findall(printed))
    curl = printed[printed.index("\ncurl ") :].partition("\n\n")[0]
    answer = json.loads(shell(home, curl, **exported))
    taken_seconds = time.monotonic() - begun

    with capsys.disabled():
        sys.stdout.write(f"\nfirst completion after {taken_seconds:.0f} s\n")
    assert "a small real model on llama.cpp" in printed
    assert answer["choices"][0]["message"]["content"]
    assert "403 policy_violation" in shell(home, look, **exported)
    shown = shell(home, 'curl --fail --silent --location "$TOLLHOUSE_URL"', **exported)
    assert "/console/assets/" in shown
    for program in PROGRAMS.findall(printed):
        assert shell(home, program, **exported).strip()
    assert taken_seconds < SECONDS_MAX


def _of_the_machine() -> dict[str, str]:
    """Where its packages come from, and whom it trusts."""
    kept = ("PIP_", "NPM_CONFIG_", "NODE_EXTRA_", "SSL_", "HTTP", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if name.upper().startswith(kept)}


def _versions(lock: Path) -> list[str]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line.rstrip(" \\") for line in lines if line[:1].isalnum()]
