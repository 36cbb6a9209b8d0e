"""Install the SDKs that Tollhouse is tested with, each in its own environment, from its lock.

`bash .ci/run sdks` runs this; tests/journeys uses the SDKs.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tollhouse.trial.model_file import cache_folder

HOME: Final = cache_folder() / "sdks"
LOCKS: Final = Path(__file__).parents[1] / "requirements" / "sdks"
PYTHON_SDKS: Final = tuple(sorted(lock.stem for lock in LOCKS.glob("*.txt")))
NODE_SDK: Final = "openai-node"
INSTALL_SECONDS_MAX: Final = 600


def python_of(sdk: str) -> Path:
    """Return the interpreter with this SDK, such as `openai-3.49.0`."""
    return HOME / sdk / "bin" / "python"


def is_prepared(sdk: str) -> bool:
    """Return whether the SDK is installed from its present lock."""
    done = HOME / sdk / "installed"
    return done.exists() and done.read_text(encoding="utf-8") == _recipe(sdk)


def prepare(sdk: str) -> None:
    """Install the SDK unless it is installed already."""
    if is_prepared(sdk):
        return
    print("installing", sdk, flush=True)
    home = HOME / sdk
    if sdk == NODE_SDK:
        shutil.copytree(LOCKS / sdk, home, dirs_exist_ok=True)
        _run("npm", "ci", "--silent", "--prefix", home)
    else:
        _run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, home)
        lock = _lock(sdk)
        _run("uv", "pip", "sync", "--quiet", "--require-hashes", "--python", python_of(sdk), lock)
    (home / "installed").write_text(_recipe(sdk), encoding="utf-8")


def _recipe(sdk: str) -> str:
    return f"{sys.version}\n{_lock(sdk).read_text(encoding='utf-8')}"


def _lock(sdk: str) -> Path:
    return LOCKS / sdk / "package-lock.json" if sdk == NODE_SDK else LOCKS / f"{sdk}.txt"


def _run(*arguments: str | Path) -> None:
    subprocess.run(arguments, check=True, timeout=INSTALL_SECONDS_MAX)  # noqa: S603 - nothing in it comes from outside


if __name__ == "__main__":
    for name in (*PYTHON_SDKS, NODE_SDK):
        prepare(name)
    print(f"the SDKs are in {HOME}")
