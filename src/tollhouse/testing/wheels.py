"""Wheels that are read and never installed: fetched by pip, against pinned hashes."""

import subprocess
import sys
from pathlib import Path
from typing import Final

DOWNLOAD_SECONDS_MAX: Final = 1_800


def fetch(requirements: Path, into: Path) -> bool:
    """Whether pip got all of them; how far it is and what went wrong it says on standard error."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download")
    options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", str(into))
    fetched = subprocess.run(  # noqa: S603 - nothing in it comes from outside
        [*pip, *options, "--requirement", str(requirements)],
        stdout=sys.stderr,
        timeout=DOWNLOAD_SECONDS_MAX,
        check=False,
    )
    return fetched.returncode == 0
