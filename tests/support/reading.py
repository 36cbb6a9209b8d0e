"""Chats as a caller reads them: pieces put together, whole answers and streams alike."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

DATA = "data: "

Body = dict[str, Any]
Place = tuple[int | str, ...]
"""Pieces with the same one are one text."""


def read_by_caller(text: str) -> list[str]:
    """What a caller makes of an answer, whole or streamed."""
    return list(put_together(text.splitlines(), by_choice).values())


def put_together(
    lines: Sequence[str], place_of: Callable[[int, int, str], Place | None]
) -> dict[Place, str]:
    """The texts of an answer. A place is found by the record, the choice, and what is said there.

    What has none is left out.
    """
    texts: dict[Place, str] = {}
    for number, record in enumerate(_records(lines)):
        for choice in record.get("choices") or ():
            for channel, piece in _pieces(choice):
                place = place_of(number, choice["index"], channel)
                if place is not None:
                    texts[place] = texts.get(place, "") + piece
    return texts


def by_choice(record: int, choice: int, channel: str) -> Place:
    del record
    return choice, channel


def _records(lines: Sequence[str]) -> Iterator[Body]:
    """Those of a stream, or the one that a whole answer is."""
    for line in lines:
        if (record := line.removeprefix(DATA)).startswith("{"):
            yield json.loads(record)


def _pieces(choice: Body) -> Iterator[tuple[str, str]]:
    """What a record adds to a choice, and to what."""
    said: Body = choice.get("delta") or choice.get("message") or {}
    for channel in ("content", "refusal", "reasoning_content"):
        if piece := said.get(channel):
            yield channel, piece
    calls: list[Body] = said.get("tool_calls") or []
    for call in calls:
        yield f"call {call.get('index', 0)}", call["function"].get("arguments") or ""


def used_tokens(lines: Sequence[str]) -> int:
    """As the backend says; none where it says nothing."""
    usages: list[dict[str, int]] = [record.get("usage") or {} for record in _records(lines)]
    return max((usage.get("total_tokens", 0) for usage in usages), default=0)
