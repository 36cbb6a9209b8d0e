"""Windows: overlapping excerpts that fit the judge's context and together cover a content.

Positions count the characters of all parts as one text, so that windows overlap across the end of
a part too: a sentence may begin in one message and end in the next.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from tollhouse.evaluation.content import escapes
from tollhouse.evaluation.types import Content, ContentPart, Window

OVERLAP_SHARE = 8
"""The next window repeats one in so many of a window's characters."""
WINDOW_BYTES_MIN = 512
"""A window of this size has space for any label and at least one character."""
_ENTRY_BYTES = len('{"part":"","text":""}')


def least_bytes(part: ContentPart) -> int:
    """Return the fewest bytes that a part takes. Characters that JSON escapes take more."""
    return len(part.label) + len(part.text) + _ENTRY_BYTES


class RenderedContent:
    """A content as text for the judge, with a cache of its windows."""

    def __init__(self, content: Content) -> None:
        self._head = f'{{"direction":{escapes.quoted(content.direction)},"parts":['
        self._parts = [part for part in content.parts if part.text]
        self._starts = [0, *accumulate(len(part.text) for part in self._parts)]
        self.text = self._join(map(_entry, self._parts))
        self._windows: dict[int, tuple[Window, ...]] = {}

    @property
    def characters(self) -> int:
        """The number of characters of all parts."""
        return self._starts[-1]

    def windows(self, *, bytes_max: int) -> tuple[Window, ...]:
        """Return the windows of the whole content, at least one even if it is empty."""
        if bytes_max not in self._windows:
            self._windows[bytes_max] = tuple(self._all(bytes_max))
        return self._windows[bytes_max]

    def halves(self, window: Window) -> tuple[Window, ...]:
        """Return smaller windows of the same excerpt, or none if it cannot be made smaller."""
        bytes_max = escapes.size_bytes(window.text) // 2
        if bytes_max < WINDOW_BYTES_MIN:
            return ()
        return tuple(self._cut(window.start, window.end, bytes_max))

    def _all(self, bytes_max: int) -> Iterable[Window]:
        if escapes.size_bytes(self.text) <= bytes_max or not self._parts:
            return [Window(start=0, end=self.characters, text=self.text)]
        return self._cut(0, self.characters, bytes_max)

    def _cut(self, start: int, end: int, bytes_max: int) -> Iterator[Window]:
        while True:
            window = self._window(start, end, bytes_max)
            yield window
            if window.end == end:
                return
            start = window.end - (window.end - window.start) // OVERLAP_SHARE

    def _window(self, start: int, end: int, bytes_max: int) -> Window:
        """Return the longest window from `start` that fits, with at least one character."""
        entries: list[str] = []
        left_bytes = bytes_max - escapes.size_bytes(self._join(()))
        at = start
        while at < end:
            entry, taken = self._longest_entry(at, end, left_bytes - 1)
            if not taken:
                break
            entries.append(entry)
            left_bytes -= escapes.size_bytes(entry) + 1
            at += taken
        assert at > start, "a window advances"
        return Window(start=start, end=at, text=self._join(entries))

    def _longest_entry(self, at: int, end: int, bytes_max: int) -> tuple[str, int]:
        """Return as much of the part at `at` as fits: the entry and its number of characters."""
        index = bisect_right(self._starts, at) - 1
        part, offset = self._parts[index], at - self._starts[index]
        text_bytes_max = max(0, bytes_max - escapes.size_bytes(_entry(ContentPart(part.label, ""))))
        text = part.text[offset : offset + min(end - at, text_bytes_max)]
        while (size_bytes := escapes.size_bytes(escapes.quoted(text)) - 2) > text_bytes_max:
            # A few lengths in proportion cost much less than a search for the longest that fits.
            text = text[: len(text) * text_bytes_max // size_bytes]
        return _entry(ContentPart(part.label, text)), len(text)

    def _join(self, entries: Iterable[str]) -> str:
        return f"{self._head}{','.join(entries)}]}}"


def _entry(part: ContentPart) -> str:
    # Without label and text this takes `_ENTRY_BYTES`.
    return f'{{"part":{escapes.quoted(part.label)},"text":{escapes.quoted(part.text)}}}'
