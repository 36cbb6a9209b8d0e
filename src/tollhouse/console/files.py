"""Where the files of the console are, and reading them into memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tollhouse.api import static_files
from tollhouse.api.static_site import File

BUILT: Final = Path(__file__).parent / "static"
"""The output folder of `make console`; part of the wheel, but not of the repository."""

INDEX: Final = "index.html"
_HASHED_FOLDERS: Final = ("assets/",)


def read(folder: Path) -> Mapping[str, File]:
    """Return the files by their path below `folder`; empty if the console is not built."""
    return static_files.read(folder, hashed_folders=_HASHED_FOLDERS)
