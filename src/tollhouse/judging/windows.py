"""A content in excerpts that a judge can read whole: overlapping, together all of it.

Characters are counted through all parts as if these were one text, so that an overlap reaches
across the end of a part, where a message may break off what the next one goes on with.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from tollhouse.judging import encoding
from tollhouse.judging.types import Content, Part, Window

OVERLAP_SHARE = 8
"""Of a window's characters, one in this many is in the next window too."""
WINDOW_BYTES_MIN = 512
"""No label and no character is so long that a window of this size could not advance."""
_ENTRY_BYTES = len('{"part":"","text":""}')


def least_bytes(part: Part) -> int:
    """No part takes fewer; many take more, since what JSON escapes is longer."""
    return len(part.label) + len(part.text) + _ENTRY_BYTES


class Sheet:
    """A content laid out once, which remembers how it was cut."""

    def __init__(self, content: Content) -> None:
        self._head = f'{{"direction":{encoding.quoted(content.direction)},"parts":['
        self._parts = [part for part in content.parts if part.text]
        self._starts = [0, *accumulate(len(part.text) for part in self._parts)]
        self.text = self._written(map(_entry, self._parts))
        self._windows: dict[int, tuple[Window, ...]] = {}

    @property
    def characters(self) -> int:
        """Of all parts together."""
        return self._starts[-1]

    def windows(self, *, bytes_max: int) -> tuple[Window, ...]:
        """All of it; at least one window, also of nothing."""
        if bytes_max not in self._windows:
            self._windows[bytes_max] = tuple(self._all(bytes_max))
        return self._windows[bytes_max]

    def halves(self, window: Window) -> tuple[Window, ...]:
        """The same excerpt in smaller ones; none where it cannot be made smaller."""
        bytes_max = encoding.size_bytes(window.text) // 2
        if bytes_max < WINDOW_BYTES_MIN:
            return ()
        return tuple(self._cut(window.start, window.end, bytes_max))

    def _all(self, bytes_max: int) -> Iterable[Window]:
        if encoding.size_bytes(self.text) <= bytes_max or not self._parts:
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
        """As much as fits, from `start` on and at most up to `end`; at least one character."""
        entries: list[str] = []
        room = bytes_max - encoding.size_bytes(self._written(()))
        at = start
        while at < end:
            entry, taken = self._taken(at, end, room - 1)
            if not taken:
                break
            entries.append(entry)
            room -= encoding.size_bytes(entry) + 1
            at += taken
        assert at > start, "a window advances"
        return Window(start=start, end=at, text=self._written(entries))

    def _taken(self, at: int, end: int, room: int) -> tuple[str, int]:
        """What fits of the part in which `at` lies, as an entry and in characters."""
        index = bisect_right(self._starts, at) - 1
        part, offset = self._parts[index], at - self._starts[index]
        room_of_text = max(0, room - encoding.size_bytes(_entry(Part(part.label, ""))))
        text = part.text[offset : offset + min(end - at, room_of_text)]
        while (size_bytes := encoding.size_bytes(encoding.quoted(text)) - 2) > room_of_text:
            # To try a few lengths in proportion costs much less than to find the longest.
            text = text[: len(text) * room_of_text // size_bytes]
        return _entry(Part(part.label, text)), len(text)

    def _written(self, entries: Iterable[str]) -> str:
        return f"{self._head}{','.join(entries)}]}}"


def _entry(part: Part) -> str:
    # Its own characters are `_ENTRY_BYTES`.
    return f'{{"part":{encoding.quoted(part.label)},"text":{encoding.quoted(part.text)}}}'
