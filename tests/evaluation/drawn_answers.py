"""Streamed answers drawn by chance: choices, channels, where pieces end, in which order they come.

Every channel in which a backend can say something is drawn: a judge must see all of them.
"""

import json
import random
from dataclasses import dataclass
from typing import Any

WORD = "forbidden"
SAID = "\u00e9"
"""A letter that only the backend says: it is in every answer, wherever pieces are cut."""
LONG_CHARACTERS = 6_000
LONG_PIECES = 4_000
"""In so many records it is looked at while it grows."""
NAME_CUTS_MAX = 3

TOLD = ("content", "reasoning_content", "refusal", "arguments")
"""What callers of either operation get, in any order of pieces."""
GROWING = (*TOLD, "function arguments", "logprobs", "top_logprobs")
CHANNELS = (*GROWING, "name", "function name", "annotations")
"""Names are short, and a source comes in one piece."""
FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter")
ENDS = ("alone", "last piece", "any piece")
REPORTS = (*ENDS, "every piece")
"""Where engines say why a choice ended and what it used: alone, or on a record with content."""
USAGE = {"prompt_tokens": 3, "completion_tokens": 9}

Place = tuple[int, str]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is said in each channel of each choice, and the records that say it."""

    said: dict[Place, str]
    events: str
    choices: int
    is_forbidden: bool
    is_long: bool


def drawn(chance: random.Random, number: int, *, choices_max: int) -> Answer:
    choices = chance.randint(1, choices_max)
    said = _said(chance, number, choices)
    growing = [place for place in said if place[1] in GROWING]
    is_long = chance.random() < 0.2
    if is_long:
        said[chance.choice(growing)] += "".join(chance.choices(SAID + "ab ", k=LONG_CHARACTERS))
    is_forbidden = chance.random() < 0.5
    if is_forbidden:
        place = chance.choice(list(said))
        at = chance.randint(0, len(said[place]))
        said[place] = said[place][:at] + WORD + said[place][at:]
    return Answer(
        said=said,
        events=_events(chance, said),
        choices=choices,
        is_forbidden=is_forbidden,
        is_long=is_long,
    )


def _said(chance: random.Random, number: int, choices: int) -> dict[Place, str]:
    places = [(choice, channel) for choice in range(choices) for channel in CHANNELS]
    told = chance.choice([place for place in places if place[1] in TOLD])
    others = chance.sample(places, chance.randint(0, len(places)))
    return {
        place: f"{SAID}{number}x{index}q " + "".join(chance.choices(SAID * 4 + "ab \n\\", k=40))
        for index, place in enumerate(dict.fromkeys([told, *others]))
    }


def _events(chance: random.Random, said: dict[Place, str]) -> str:
    queues = {place: _cut(chance, place[1], text) for place, text in said.items()}
    records: list[dict[str, Any]] = []
    while queues:
        place = chance.choice(list(queues))
        records.append({"choices": [_piece(place, queues[place].pop(0))]})
        if not queues[place]:
            del queues[place]
    for choice in range(1 + max(choice for choice, _ in said)):
        _finish(chance, records, choice)
    _report(chance, records)
    return "".join(f"data: {json.dumps(record)}\n\n" for record in records) + "data: [DONE]\n\n"


def _finish(chance: random.Random, records: list[dict[str, Any]], choice: int) -> None:
    """Say why a choice ended: in a record of its own, with its last piece, or with an earlier."""
    pieces = [record["choices"][0] for record in records if record["choices"][0]["index"] == choice]
    reason = chance.choice(FINISH_REASONS)
    match chance.choice(ENDS):
        case "last piece" if pieces:
            pieces[-1]["finish_reason"] = reason
        case "any piece" if pieces:
            chance.choice(pieces)["finish_reason"] = reason
        case _:
            end: dict[str, Any] = {"index": choice, "delta": {}, "finish_reason": reason}
            records.append({"choices": [end]})


def _report(chance: random.Random, records: list[dict[str, Any]]) -> None:
    """Report usage with every record, with some, or at the end alone."""
    reported = {
        "every piece": records,
        "any piece": chance.sample(records, chance.randint(1, len(records))),
        "last piece": records[-1:],
        "alone": [],
    }[chance.choice(REPORTS)]
    for record in reported:
        record["usage"] = USAGE
    if not reported:
        records.append({"choices": [], "usage": USAGE})


def _cut(chance: random.Random, channel: str, text: str) -> list[str]:
    if channel == "annotations":
        return [text]
    if channel == "name":
        return _cut_of_name(chance, text)
    return _pieces(chance, text, LONG_PIECES if len(text) > LONG_CHARACTERS else 12)


def _cut_of_name(chance: random.Random, text: str) -> list[str]:
    """No two are equal: these would be one name that is said again, as some engines do."""
    while True:
        pieces = _pieces(chance, text, NAME_CUTS_MAX)
        if len(set(pieces)) == len(pieces):
            return pieces


def _pieces(chance: random.Random, text: str, cuts_max: int) -> list[str]:
    cuts = cuts_max if cuts_max == LONG_PIECES else chance.randint(0, cuts_max)
    ends = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, cuts)))
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _piece(place: Place, piece: str) -> dict[str, Any]:
    choice, channel = place
    match channel:
        case "logprobs":
            return {"index": choice, "logprobs": {"content": [_token(piece)]}}
        case "top_logprobs":
            guessed = _token("") | {"top_logprobs": [_token(""), _token(piece)]}
            return {"index": choice, "logprobs": {"content": [guessed]}}
        case _:
            return {"index": choice, "delta": _delta(channel, piece)}


def _token(text: str) -> dict[str, Any]:
    return {"token": text, "logprob": -1.0}


def _delta(channel: str, piece: str) -> dict[str, Any]:
    match channel:
        case "name" | "arguments":
            return {"tool_calls": [{"index": 0, "id": "c", "function": {channel: piece}}]}
        case "function name" | "function arguments":
            return {"function_call": {channel.removeprefix("function "): piece}}
        case "annotations":
            source = {"start_index": 0, "end_index": 1, "title": piece, "url": "https://a.example"}
            return {"annotations": [{"type": "url_citation", "url_citation": source}]}
        case _:
            return {channel: piece}
