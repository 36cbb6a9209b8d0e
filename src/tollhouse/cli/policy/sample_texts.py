"""Files of sample texts: a JSON object per line, with `text` and optionally `label`."""

from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec
from msgspec import Struct

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
TEXTS_MAX: Final = 100_000


class Sample(Struct, frozen=True, kw_only=True):
    """A text. Unknown members of its line are ignored."""

    text: str


class LabelledSample(Sample, frozen=True, kw_only=True):
    """A text with a label: whether the policy should match it."""

    label: bool


SampleT = TypeVar("SampleT", bound=Sample)


def read(path: Path) -> dict[int, Sample]:
    """Return the texts of a file by line number."""
    return _read(path, Sample)


def read_labelled(path: Path) -> list[LabelledSample]:
    """Return the labelled texts of a file."""
    return list(_read(path, LabelledSample).values())


def _read(path: Path, kind: type[SampleT]) -> dict[int, SampleT]:
    if path.stat().st_size > FILE_BYTES_MAX:
        message = f"{path} is too large. A file of texts has at most {FILE_BYTES_MAX} bytes."
        raise click.UsageError(message)
    decoder = msgspec.json.Decoder(kind)
    found: dict[int, SampleT] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found[number] = decoder.decode(line)
            except msgspec.MsgspecError as error:
                message = f"{path}, line {number}: {error}"
                raise click.UsageError(message) from None
    if not 0 < len(found) <= TEXTS_MAX:
        message = f"{path} has {len(found)} texts; it must have from 1 to {TEXTS_MAX}."
        raise click.UsageError(message)
    return found
