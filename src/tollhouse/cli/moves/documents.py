"""The files of a move: one per table, and the documents that the two cells exchange.

Each document is written at once or not at all. It contains the SHA-256 of the document that it
answers, so that a release can only be made for what was copied, received and compared.
"""

import hashlib
import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from tollhouse.base.errors import DeploymentError
from tollhouse.cli.moves.tables import TableDigest

FORMAT: Final = 2
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
    open_days: list[str]
    closed_days: list[str]
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

    async def write_lines(self, name: str, lines: AsyncIterator[str]) -> TableDigest:
        """Store the rows of a table durably."""
        rows, digest = 0, hashlib.sha256()
        with _created(self._table(name)) as file:
            async for line in lines:
                written = line.encode() + b"\n"
                rows += 1
                digest.update(written)
                file.write(written)
        return TableDigest(name=name, rows=rows, sha256=digest.hexdigest())

    def read_lines(self, expected: TableDigest) -> Iterator[str]:
        """Yield the rows of a table. Raises unless they are those of the manifest."""
        path = self._table(expected.name)
        with self._opened(path) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected.sha256:
                message = f"{path} is not the file that was exported."
                raise DocumentUnusable(message)
            file.seek(0)
            for line in file:
                yield line.removesuffix(b"\n").decode()

    def write(self, document: Struct) -> None:
        """Store a document at once or not at all."""
        path = self._document(type(document))
        unfinished = path.with_suffix(".unfinished")
        with _created(unfinished) as file:
            file.write(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
        unfinished.replace(path)

    def read(self, kind: type[DocumentT]) -> DocumentT:
        """Return a document. Raises `DocumentUnusable` if it is missing or damaged."""
        path = self._document(kind)
        try:
            with self._opened(path) as file:
                return msgspec.json.decode(file.read(), type=kind)
        except msgspec.DecodeError as error:
            message = f"{path} cannot be read: {error}"
            raise DocumentUnusable(message) from None

    def sha256(self, kind: type[Struct]) -> str:
        """Return the digest of a document as it is stored."""
        return hashlib.sha256(self._document(kind).read_bytes()).hexdigest()

    def _document(self, kind: type[Struct]) -> Path:
        return self._path / f"{kind.__name__.lower()}.json"

    def _table(self, name: str) -> Path:
        return self._path / f"{name}.jsonl"

    def _opened(self, path: Path) -> BufferedReader:
        try:
            return path.open("rb")
        except FileNotFoundError:
            message = f"{path} is missing: the step that writes it has not ended."
            raise DocumentUnusable(message) from None


@contextmanager
def _created(path: Path) -> Generator[IO[bytes]]:
    """Open a file of the owner's alone, and store it durably."""
    with open(path, "wb", opener=partial(os.open, mode=OWNER_ONLY)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
