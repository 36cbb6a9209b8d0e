"""What is recorded of the tests of one process."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

import msgspec

CACHE: Final = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollhouse" / "coverage"
)
"""Records outside of all clones, in a folder for each commit."""
KEPT_MAX: Final = 10


class RecordedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Which tests ran which lines of a file, by their numbers in the list of tests."""

    digest: str
    """Of the file's text. Lines of another text say nothing."""
    lines: dict[int, list[int]]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Tests that passed, with their seconds, and the files of the package that they ran."""

    tests: list[tuple[str, float]]
    files: dict[str, RecordedFile]


def digest(path: Path) -> str:
    """Return a digest of a file's text."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def keep(folder: Path, commit: str) -> None:
    """Copy the records of a commit into the cache, as a whole or not at all."""
    new, kept = CACHE / f"{commit}.{os.getpid()}", CACHE / commit
    shutil.copytree(folder, new)
    shutil.rmtree(kept, ignore_errors=True)
    new.rename(kept)
    for old in sorted(CACHE.iterdir(), key=lambda path: path.stat().st_ctime)[:-KEPT_MAX]:
        shutil.rmtree(old)
