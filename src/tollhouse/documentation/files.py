"""Where the files of the documentation are, and reading them into memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tollhouse.api import static_files
from tollhouse.api.static_site import File

BUILT: Final = Path(__file__).parent / "static"
"""The output folder of `make docs`; part of the wheel, but not of the repository."""

INDEX: Final = "index.html"
DIGESTS: Final = "digests.json"
_HASHED_FOLDERS: Final = ("assets/javascripts/", "assets/stylesheets/")


class InlineDigests(Struct, frozen=True, kw_only=True):
    """The digests (SHA-256, base64) of what pages have inside, for the content security policy."""

    scripts: list[str] = []
    styles: list[str] = []


def read(folder: Path) -> Mapping[str, File]:
    """Return the files by their path below `folder`; empty if the site is not built."""
    return static_files.read(folder, hashed_folders=_HASHED_FOLDERS)


def read_digests(folder: Path) -> InlineDigests:
    """Return what the build found in the pages; empty if the site is not built."""
    path = folder / DIGESTS
    if not path.is_file():
        return InlineDigests()
    return msgspec.json.decode(path.read_bytes(), type=InlineDigests)
