"""The interpreter that a deployment would have: Debian's own is built with its profile."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tollhouse.trial.model_file import cache_folder

REPOSITORY: Final = Path(__file__).parents[2]
DEBIAN_PYTHON: Final = "/usr/bin/python3"
INSTALL_SECONDS_MAX: Final = 600
_PACKAGES: Final = cache_folder() / "bench"
_LOCK: Final = REPOSITORY / "requirements" / "runtime.txt"
_DESCRIBE: Final = "import sys; print(sys.version); sys.exit(sys.version_info < (3, 11))"


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A program and where it finds its packages."""

    program: str
    description: str
    packages: Path | None = None

    def environment(self) -> dict[str, str]:
        """Compiled files are read and written: whoever starts without measures the compiler."""
        variables = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}  # noqa: TID251 - for a child
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        if self.packages is not None:
            variables["PYTHONPATH"] += f":{self.packages}"
        return variables


def chosen(program: str = DEBIAN_PYTHON) -> Interpreter:
    """Return this one with the locked packages, if they can be installed, or the present one."""
    described = _described(program)
    packages = _installed(program, described) if described is not None else None
    if described is not None and packages is not None:
        found = Interpreter(program=program, description=described, packages=packages)
    else:
        present = _described(sys.executable) or sys.version
        found = Interpreter(program=sys.executable, description=present)
    _run(found.program, "-m", "compileall", "-q", str(REPOSITORY / "src"), interpreter=found)
    return found


def _described(program: str) -> str | None:
    """Nothing, if it is not there or too old."""
    try:
        done = _run(program, "-c", _DESCRIBE)
    except FileNotFoundError:
        return None
    return f"{program}: {done.stdout.strip()}" if done.returncode == 0 else None


def _installed(program: str, described: str) -> Path | None:
    """A folder of its own for each lock and interpreter; nothing, if it cannot be installed."""
    digest = hashlib.sha256(_LOCK.read_bytes() + described.encode()).hexdigest()[:16]
    folder = _PACKAGES / digest
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(f".{os.getpid()}")
    done = _run(
        *(sys.executable, "-m", "pip", "--python", program, "--quiet", "install"),
        *("--require-hashes", "--target", str(unfinished), "-r", str(_LOCK)),
    )
    if done.returncode != 0:
        return None
    unfinished.rename(folder)
    return folder


def _run(*command: str, interpreter: Interpreter | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - nothing in it comes from outside
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        env=None if interpreter is None else interpreter.environment(),
    )
