"""Files of texts to try policies on: a JSON object in each line, with `text` and maybe `label`."""

from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec
from msgspec import Struct

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
TEXTS_MAX: Final = 100_000


class Sample(Struct, frozen=True, kw_only=True):
    """A text; `label` says whether the policy should match it. Other members are passed over."""

    text: str


class LabelledSample(Sample, frozen=True, kw_only=True):
    """A text whose answer is known."""

    label: bool


SampleT = TypeVar("SampleT", bound=Sample)


def read(path: Path) -> dict[int, Sample]:
    """All texts of a file, by the numbers of their lines."""
    return _read(path, Sample)


def read_labelled(path: Path) -> list[LabelledSample]:
    """All texts of a file, each with its label."""
    return list(_read(path, LabelledSample).values())


def _read(path: Path, kind: type[SampleT]) -> dict[int, SampleT]:
    if path.stat().st_size > FILE_BYTES_MAX:
        message = f"{path} has more than {FILE_BYTES_MAX} bytes."
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
