"""The SDKs that Tollhouse must serve, each in an environment of its own, installed once by its lock.

`bash .ci/run sdks` prepares them, by uv; the tests of journeys start them.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

HOME: Final = Path.home() / ".cache" / "tollhouse" / "sdks"
LOCKS: Final = Path(__file__).parents[1] / "requirements" / "sdks"
PYTHON_SDKS: Final = tuple(sorted(lock.stem for lock in LOCKS.glob("*.txt")))
INSTALL_SECONDS_MAX: Final = 600


def python_of(sdk: str) -> Path:
    """The interpreter that has this SDK, such as `openai-3.49.0`."""
    return HOME / sdk / "bin" / "python"


def is_prepared(sdk: str) -> bool:
    """Whether it is there, and by the lock as it is now."""
    done = HOME / sdk / "installed"
    return done.exists() and done.read_text(encoding="utf-8") == _recipe(sdk)


def prepare(sdk: str) -> None:
    """Install it, if it is not there yet."""
    if is_prepared(sdk):
        return
    print("installing", sdk, flush=True)
    home = HOME / sdk
    _run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, home)
    _run(
        *("uv", "pip", "sync", "--quiet", "--require-hashes"),
        *("--python", python_of(sdk), LOCKS / f"{sdk}.txt"),
    )
    (home / "installed").write_text(_recipe(sdk), encoding="utf-8")


def _recipe(sdk: str) -> str:
    lock = (LOCKS / f"{sdk}.txt").read_text(encoding="utf-8")
    return f"{sys.version}\n{lock}"


def _run(*arguments: str | Path) -> None:
    subprocess.run(arguments, check=True, timeout=INSTALL_SECONDS_MAX)  # noqa: S603 - nothing in it comes from outside


if __name__ == "__main__":
    for name in PYTHON_SDKS:
        prepare(name)
    print(f"{len(PYTHON_SDKS)} SDKs are in {HOME}")
