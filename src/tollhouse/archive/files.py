"""Parquet files of days, in a directory or in S3-compatible storage.

Only this module knows pyarrow, which is an extra and has no type annotations. A day's folder is
`TABLE/day=YYYY-MM-DD`, with files in the order of the table's key and a manifest, written last.
"""

import hashlib
import importlib
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from secrets import token_hex
from typing import Any, Final

import msgspec

from tollhouse.archive import rules
from tollhouse.archive.errors import ArchiveDiffers, ArchivePackagesMissing, ArchiveUnreachable
from tollhouse.archive.types import (
    FORMS,
    ArchivedFile,
    ColumnType,
    DayManifest,
    DaySums,
    SumsByOrganization,
    TableForm,
)

ROWS_PER_GROUP: Final = 131_072
GROUPS_PER_FILE: Final = 64
MANIFEST: Final = "manifest.json"
_UNFINISHED: Final = ".unfinished"
_PIECE_BYTES: Final = 4_194_304
_DIGITS: Final = 38
"""Sums are decimals of this precision: sums of 64-bit integers could overflow."""

Rows = Sequence[Iterable[object]]


class ArchiveFiles:
    """The files of the archive at one address. Raises `ArchiveUnreachable` from every method."""

    def __init__(self, url: str) -> None:
        self._arrow: Any = _module("pyarrow")
        self._parquet: Any = _module("pyarrow.parquet")
        self._compute: Any = _module("pyarrow.compute")
        self._dataset: Any = _module("pyarrow.dataset")
        self._storage: Any = _module("pyarrow.fs")
        self.url = url
        with self._explained():
            self._files, self._root = self._storage.FileSystem.from_uri(url)
        self._is_local = self._files.type_name == "local"

    async def write(
        self, table: str, day: date, batches: AsyncIterator[Rows]
    ) -> list[ArchivedFile]:
        """Write a day, replacing what an earlier attempt left of it, and return its files.

        It has no manifest meanwhile: `publish` writes one once the files were compared.
        """
        form, folder = FORMS[table], self._folder(table, day)
        manifest = f"{folder}/{MANIFEST}"
        with self._explained():
            if self._is_local:
                self._files.create_dir(folder, recursive=True)
            if self._files.get_file_info(manifest).is_file:
                self._files.delete_file(manifest)
            files = [file async for file in self._written(form, folder, batches)]
            self._remove_others(folder, {file.name for file in files})
        return files

    def publish(self, manifest: DayManifest) -> None:
        """Store the manifest beside its files."""
        path = f"{self._folder(manifest.table, manifest.day)}/{MANIFEST}"
        with self._explained(), self._files.open_output_stream(path) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(manifest)))

    def manifest(self, table: str, day: date) -> DayManifest:
        """Return the manifest that is stored beside the files of a day."""
        with (
            self._explained(),
            self._files.open_input_stream(f"{self._folder(table, day)}/{MANIFEST}") as stream,
        ):
            return msgspec.json.decode(stream.read(), type=DayManifest)

    def is_published(self, manifest: DayManifest) -> bool:
        """Return whether this manifest and its files are stored. The files are not read."""
        folder = self._folder(manifest.table, manifest.day)
        paths = [f"{folder}/{name}" for name in (MANIFEST, *(file.name for file in manifest.files))]
        with self._explained():
            stored, *files = self._files.get_file_info(paths)
        return (
            stored.is_file
            and [file.size for file in files] == [file.size_bytes for file in manifest.files]
            and self.manifest(manifest.table, manifest.day) == manifest
        )

    def changed_file(self, manifest: DayManifest) -> str | None:
        """Return the name of the first file of a day that is missing or changed, or None."""
        folder = self._folder(manifest.table, manifest.day)
        for file in manifest.files:
            path = f"{folder}/{file.name}"
            with self._explained():
                found = self._files.get_file_info(path)
                if found.size != file.size_bytes or self._sha256(path) != file.sha256:
                    return path
        return None

    def sums(self, manifest: DayManifest) -> SumsByOrganization:
        """Read every row of a day, and return the sums by organization.

        These are of the columns that were summed when the day was written. Raises `ArchiveDiffers`
        if a row is there twice.
        """
        form, result, last = FORMS[manifest.table], SumsByOrganization(), ""
        folder, summed = self._folder(manifest.table, manifest.day), [*manifest.total.sums]
        columns = [*dict.fromkeys((*form.key, *summed))]
        with self._explained():
            for file in manifest.files:
                stored = self._parquet.ParquetFile(f"{folder}/{file.name}", filesystem=self._files)
                for number in range(stored.num_row_groups):
                    rows = stored.read_row_group(number, columns=columns)
                    last = self._check_order(form, rows, last, f"{folder}/{file.name}")
                    result = rules.merged(result, self._grouped_sums(summed, rows))
        return result

    def find(
        self, manifests: Iterable[DayManifest], equal: Mapping[str, object], *, rows_max: int
    ) -> list[dict[str, Any]]:
        """Return at most `rows_max` rows whose columns have the given values, in order of days."""
        found: list[dict[str, Any]] = []
        for manifest in manifests:
            with self._explained():
                part = self._scanner(manifest, equal).head(rows_max - len(found))
            found += part.to_pylist()
            if len(found) == rows_max:
                break
        return found

    def total(self, manifest: DayManifest, equal: Mapping[str, object]) -> DaySums:
        """Return the sums of the rows of a day whose columns have the given values."""
        form = FORMS[manifest.table]
        columns = [*dict.fromkeys(("organization_id", *form.summed))]
        with self._explained():
            rows = self._scanner(manifest, equal, columns).to_table()
        return rules.total(self._grouped_sums(form.summed, rows).values(), summed=form.summed)

    async def _written(
        self, form: TableForm, folder: str, batches: AsyncIterator[Rows]
    ) -> AsyncIterator[ArchivedFile]:
        """Write rows group by group, and yield each file when it is complete."""
        file: _FileInProgress | None = None
        number = 0
        try:
            async for rows in batches:
                file = file or self._started(form, folder, number)
                file.add(self._table(form, rows))
                if file.groups == GROUPS_PER_FILE:
                    complete, file, number = file, None, number + 1
                    yield self._finished(complete)
            if file is not None:
                complete, file = file, None
                yield self._finished(complete)
        finally:
            if file is not None:
                # Closed later, it would write its end into the file of the next attempt.
                file.writer.close()

    def _started(self, form: TableForm, folder: str, number: int) -> "_FileInProgress":
        path = f"{folder}/part-{number:05}.parquet"
        # An object of S3 appears when it is complete; a file of a directory needs another name.
        # Two writers of one day, if a lease expired, never write into one file.
        written = f"{path}.{token_hex(4)}{_UNFINISHED}" if self._is_local else path
        ids = {name for name in form.key if form.columns[name] is ColumnType.ID}
        repeated = [name for name in form.columns if name not in ids - {"organization_id"}]
        writer = self._parquet.ParquetWriter(
            written,
            self._schema(form),
            filesystem=self._files,
            compression="zstd",
            use_dictionary=repeated,
        )
        return _FileInProgress(path=path, written=written, writer=writer)

    def _finished(self, file: "_FileInProgress") -> ArchivedFile:
        file.writer.close()
        if file.written != file.path:
            self._files.move(file.written, file.path)
        size_bytes = self._files.get_file_info(file.path).size
        return ArchivedFile(
            name=file.path.rpartition("/")[2],
            rows=file.rows,
            size_bytes=size_bytes,
            sha256=self._sha256(file.path),
        )

    def _sha256(self, path: str) -> str:
        digest = hashlib.sha256()
        with self._files.open_input_stream(path) as stream:
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
        return digest.hexdigest()

    def _remove_others(self, folder: str, names: set[str]) -> None:
        """Remove files of an earlier attempt, and its manifest."""
        selector = self._storage.FileSelector(folder, allow_not_found=True)
        for found in self._files.get_file_info(selector):
            if found.base_name not in names:
                self._files.delete_file(found.path)

    def _schema(self, form: TableForm) -> Any:  # noqa: ANN401 - pyarrow's
        arrow = self._arrow
        types: Any = {
            ColumnType.ID: arrow.string(),
            ColumnType.TEXT: arrow.string(),
            ColumnType.DAY: arrow.date32(),
            ColumnType.INSTANT: arrow.timestamp("us", tz="UTC"),
            ColumnType.INTEGER: arrow.int64(),
            ColumnType.NUMBER: arrow.float32(),
            ColumnType.FLAG: arrow.bool_(),
        }
        return arrow.schema([(name, types[kind]) for name, kind in form.columns.items()])

    def _table(self, form: TableForm, rows: Rows) -> Any:  # noqa: ANN401 - pyarrow's
        schema = self._schema(form)
        arrays = [
            self._arrow.array(values, type=field.type)
            for values, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        return self._arrow.Table.from_arrays(arrays, schema=schema)

    def _check_order(self, form: TableForm, rows: Any, last: str, path: str) -> str:  # noqa: ANN401 - pyarrow's
        """Raise `ArchiveDiffers` unless all keys rise, so that no row is there twice."""
        compute = self._compute
        parts = [compute.cast(rows[name], self._arrow.string()) for name in form.key]
        keys = compute.binary_join_element_wise(*parts, "/").combine_chunks()
        is_rising = compute.all(compute.less(keys[:-1], keys[1:])).as_py() is not False
        if not is_rising or keys[0].as_py() <= last:
            message = f"{path}: a row is there twice, or rows are not in order."
            raise ArchiveDiffers(message)
        return keys[-1].as_py()

    def _grouped_sums(self, summed: Sequence[str], rows: Any) -> SumsByOrganization:  # noqa: ANN401 - pyarrow's
        exact = self._arrow.decimal128(_DIGITS, 0)
        for name in summed:
            position = rows.schema.get_field_index(name)
            rows = rows.set_column(position, name, rows[name].cast(exact))
        wanted: list[Any] = [(name, "sum") for name in summed]
        sums = rows.group_by("organization_id").aggregate([*wanted, ([], "count_all")])
        return {
            row["organization_id"]: DaySums(
                rows=row["count_all"],
                sums={name: int(row[f"{name}_sum"] or 0) for name in summed},
            )
            for row in sums.to_pylist()
        }

    def _scanner(
        self,
        manifest: DayManifest,
        equal: Mapping[str, object],
        columns: Sequence[str] | None = None,
    ) -> Any:  # noqa: ANN401 - pyarrow's
        folder = self._folder(manifest.table, manifest.day)
        paths = [f"{folder}/{file.name}" for file in manifest.files]
        schema = self._schema(FORMS[manifest.table])
        stored = self._dataset.dataset(
            paths, schema=schema, filesystem=self._files, format="parquet"
        )
        wanted: Any = None
        for name, value in equal.items():
            is_equal = self._dataset.field(name) == value
            wanted = is_equal if wanted is None else wanted & is_equal
        return stored.scanner(columns=columns, filter=wanted)

    def _folder(self, table: str, day: date) -> str:
        return f"{self._root}/{table}/day={day.isoformat()}"

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (OSError, self._arrow.ArrowException) as failure:
            message = f"The archive at {self.url} cannot be used: {failure}"
            raise ArchiveUnreachable(message) from failure


@dataclass(kw_only=True, slots=True)
class _FileInProgress:
    path: str
    written: str
    writer: Any
    rows: int = 0
    groups: int = 0

    def add(self, rows: Any) -> None:  # noqa: ANN401 - pyarrow's
        self.writer.write_table(rows, row_group_size=ROWS_PER_GROUP)
        self.rows += rows.num_rows
        self.groups += 1


def _module(name: str) -> Any:  # noqa: ANN401 - no annotations
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ArchivePackagesMissing from None
