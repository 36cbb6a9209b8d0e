"""A mutant: one change of one place in the source."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replace the bytes from `start` to `end` of a file."""

    operator: str
    start: int
    end: int
    replacement: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """An edit, with what names it. `before` and `after` are the changed lines on one line each."""

    path: str
    function: str
    line: int
    last_line: int
    index: int
    occurrence: int
    edit: Edit
    before: str
    after: str

    @property
    def place(self) -> str:
        """Where it is now. Moves with the lines above it."""
        return f"{self.path}:{self.line}:{self.edit.operator}:{self.index}"

    @property
    def identity(self) -> str:
        """What it is called in committed files. Stays when lines above it are added or removed."""
        name = f"{self.path} {self.function} {self.edit.operator}: {self.before} => {self.after}"
        return name if self.occurrence == 1 else f"{name} #{self.occurrence}"

    def apply(self, text: bytes) -> bytes:
        """Return the file's text with the edit."""
        edit = self.edit
        return text[: edit.start] + edit.replacement + text[edit.end :]


class Lines:
    """Offsets of the lines of a file."""

    def __init__(self, text: bytes) -> None:
        lengths = (len(line) for line in text.splitlines(keepends=True))
        self._text = text
        self._starts = list(accumulate(lengths, initial=0))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place as `ast` gives it: lines from 1, columns in bytes."""
        return self._starts[line - 1] + column

    def number(self, offset: int) -> int:
        """Return the line that an offset is in."""
        return bisect_right(self._starts, offset)

    def around(self, edit: Edit) -> tuple[str, str]:
        """Return the edited lines before and after, with all white space shortened."""
        start = self._starts[self.number(edit.start) - 1]
        end = self._starts[min(self.number(max(edit.start, edit.end - 1)), len(self._starts) - 1)]
        head, tail = self._text[start : edit.start], self._text[edit.end : end]
        return _shortened(self._text[start:end]), _shortened(head + edit.replacement + tail)


def named(path: str, text: bytes, edits: Iterable[tuple[str, Edit]]) -> Iterator[Mutant]:
    """Name the edits of a file, each given with the function that it is in."""
    lines = Lines(text)
    on_line: Counter[tuple[int, str]] = Counter()
    alike: Counter[tuple[str, str, str, str]] = Counter()
    for function, edit in sorted(edits, key=lambda found: (found[1].start, found[1].operator)):
        line = lines.number(edit.start)
        before, after = lines.around(edit)
        if before == after:
            continue
        on_line[line, edit.operator] += 1
        alike[function, edit.operator, before, after] += 1
        yield Mutant(
            path=path,
            function=function,
            line=line,
            last_line=lines.number(max(edit.start, edit.end - 1)),
            index=on_line[line, edit.operator],
            occurrence=alike[function, edit.operator, before, after],
            edit=edit,
            before=before,
            after=after,
        )


def _shortened(text: bytes) -> str:
    return " ".join(text.decode().split())
