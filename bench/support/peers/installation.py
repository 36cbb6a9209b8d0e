"""Installs other gateways from their locks, each in an environment of its own outside of the tree.

The Python ones get the interpreter that Tollhouse is measured with.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.support.interpreters import Interpreter
from bench.support.peers.known import Peer
from tollhouse.trial.model_file import cache_folder

HOME: Final = cache_folder() / "peers"
INSTALL_SECONDS_MAX: Final = 1_200
_SHOWN_CHARACTERS: Final = 300


class PeerUnavailableError(Exception):
    """A gateway that cannot be measured here, with the reason."""


def installed(peer: Peer, interpreter: Interpreter) -> Path:
    """Return the folder of its environment; install it unless this lock is installed already.

    Raises PeerUnavailableError if that fails.
    """
    home, recipe = HOME / peer.pin, _recipe(peer, interpreter)
    done = home / "installed"
    if done.exists() and done.read_text(encoding="utf-8") == recipe:
        return home
    shutil.rmtree(home, ignore_errors=True)
    if peer.is_node:
        shutil.copytree(peer.lock.parent, home)
        _run("npm", "ci", "--silent", "--ignore-scripts", "--prefix", str(home))
    else:
        _run(interpreter.program, "-m", "venv", "--without-pip", str(home))
        _run(
            *(sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "--quiet"),
            *("install", "--require-hashes", "-r", str(peer.lock)),
        )
    done.write_text(recipe, encoding="utf-8")
    return home


def _recipe(peer: Peer, interpreter: Interpreter) -> str:
    return f"{interpreter.description}\n{peer.lock.read_text(encoding='utf-8')}"


def _run(*command: str) -> None:
    try:
        subprocess.run(  # noqa: S603 - nothing in it comes from outside
            command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX
        )
    except FileNotFoundError as error:
        raise PeerUnavailableError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise PeerUnavailableError(
            f"{command[0]} took longer than {INSTALL_SECONDS_MAX} s"
        ) from error
    except subprocess.CalledProcessError as error:
        said = f"{error.stdout}{error.stderr}".strip()[-_SHOWN_CHARACTERS:]
        raise PeerUnavailableError(f"{Path(command[0]).name} failed: {said}") from error
