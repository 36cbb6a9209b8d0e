"""What is recorded of the tests of one process."""

import hashlib
from pathlib import Path

import msgspec


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
