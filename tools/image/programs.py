"""Running the programs that build and run images, each within a bound."""

import subprocess
from pathlib import Path


class ProgramFailed(Exception):
    """A program ended with another status than 0, or not in time."""


def run(*command: str | Path, seconds_max: float = 120) -> str:
    """Run a program and return what it printed on its standard output."""
    try:
        ended = subprocess.run(  # noqa: S603 - commands of our own
            command, check=False, capture_output=True, text=True, timeout=seconds_max
        )
    except subprocess.TimeoutExpired:
        message = f"{_shown(command)} did not end within {seconds_max:g} s"
        raise ProgramFailed(message) from None
    if ended.returncode != 0:
        message = f"{_shown(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
        raise ProgramFailed(message)
    return ended.stdout


def succeeds(*command: str | Path, seconds_max: float = 120) -> bool:
    """Run a program and return whether it ended with status 0 in time."""
    try:
        run(*command, seconds_max=seconds_max)
    except ProgramFailed:
        return False
    return True


def _shown(command: tuple[str | Path, ...]) -> str:
    return " ".join(map(str, command))
