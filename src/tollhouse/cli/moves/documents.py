"""The files of a move: one per table, and the documents that the two cells exchange.

Each document is written at once or not at all. It contains the SHA-256 of the document that it
answers, so that a release can only be made for what was copied, received and compared.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from tollhouse.base.errors import DeploymentError
from tollhouse.storage.portable import LineHash, TableDigest

FORMAT: Final = 1
OWNER_ONLY: Final = 0o600
FOLDER_MODE: Final = 0o700

DocumentT = TypeVar("DocumentT", bound=Struct)


class Manifest(Struct, frozen=True, kw_only=True):
    """What was copied: written last, so that without it the copy does not count."""

    format: int = FORMAT
    move_id: UUID
    organization_id: UUID
    from_cell: str
    to_cell: str
    schema_revision: str
    frozen_at: str
    frozen_until: str
    open_days: list[str]
    closed_days: list[str]
    peppers: list[str]
    tables: list[TableDigest]


class Receipt(Struct, frozen=True, kw_only=True):
    """What the new cell has stored, recomputed from its own rows."""

    move_id: UUID
    organization_id: UUID
    manifest_sha256: str
    tables: list[TableDigest]


class Release(Struct, frozen=True, kw_only=True):
    """The old cell has closed the organization, and the new one may serve it."""

    move_id: UUID
    organization_id: UUID
    receipt_sha256: str


class DocumentUnusable(DeploymentError):
    """A file of the move is missing, damaged or belongs to another move."""

    code = "move_document_unusable"


class MoveFolder:
    """The folder with all files of one move."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self) -> None:
        """Make the folder, and remove the documents of an earlier attempt from it."""
        self._path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        for document in (Release, Receipt, Manifest):
            self._document(document).unlink(missing_ok=True)

    def write_lines(self, table: str) -> "LineFile":
        """Return a new file for the rows of a table."""
        return LineFile(self._table(table), table)

    def read_lines(self, expected: TableDigest) -> Iterator[str]:
        """Yield the rows of a table. Raises at the end if they are not those of the manifest."""
        counted = LineHash(expected.name)
        with self._opened(self._table(expected.name)) as file:
            for line in file:
                counted.add(line.rstrip("\n"))
                yield line.rstrip("\n")
        if counted.digest() != expected:
            message = f"{self._table(expected.name)} is not the file that was exported."
            raise DocumentUnusable(message)

    def write(self, document: Struct) -> None:
        """Store a document at once or not at all."""
        path = self._document(type(document))
        unfinished = path.with_suffix(".unfinished")
        with open(unfinished, "wb", opener=_owner_only) as file:
            file.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def read(self, kind: type[DocumentT]) -> DocumentT:
        """Return a document. Raises `DocumentUnusable` if it is missing or damaged."""
        path = self._document(kind)
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            message = f"{path} is missing: the step that writes it has not ended."
        except msgspec.DecodeError as error:
            message = f"{path} cannot be read: {error}"
        raise DocumentUnusable(message)

    def sha256(self, kind: type[Struct]) -> str:
        """Return the digest of a document as it is stored."""
        return hashlib.sha256(self._document(kind).read_bytes()).hexdigest()

    def _document(self, kind: type[Struct]) -> Path:
        return self._path / f"{kind.__name__.lower()}.json"

    def _table(self, name: str) -> Path:
        return self._path / f"{name}.jsonl"

    def _opened(self, path: Path):  # noqa: ANN202 - a text file
        try:
            return path.open(encoding="utf-8", newline="\n")
        except FileNotFoundError:
            message = f"{path} is missing. Copy the whole folder."
            raise DocumentUnusable(message) from None


class LineFile:
    """Writes the rows of one table, and adds them up."""

    def __init__(self, path: Path, table: str) -> None:
        self._counted = LineHash(table)
        self._file = open(path, "w", encoding="utf-8", newline="\n", opener=_owner_only)  # noqa: SIM115 - closed by `finish`

    def add(self, line: str) -> None:
        """Write one row."""
        self._counted.add(line)
        self._file.write(line + "\n")

    def finish(self) -> TableDigest:
        """Store the file durably and return its digest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._counted.digest()


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, OWNER_ONLY)
