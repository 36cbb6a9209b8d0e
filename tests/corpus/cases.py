"""The cases of the corpus, combined from tables in one order, each under a name that stays."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from zlib import crc32

from tests.corpus.oddities import FORMS, HEADERS, RAW, Fields

TOKENS: Final = 8
"""What the engine writes by itself: "The gate is open and the toll is"."""
LEFT_AT: Final = " open"
"""The last word that a caller reads who leaves amid a stream."""


def cut(how: str, after: int | str, *, inside: bool = False) -> Fields:
    return {"cut": {"how": how, "after": after, "inside": inside}}


FAULTS: dict[str, Fields | None] = {
    "none": None,
    "400": {"status": 400, "error": {"message": "Too odd.", "code": 400}},
    "401": {"status": 401},
    "404": {"status": 404},
    "context": {
        "status": 400,
        "error": {
            "message": "maximum context length is 64 tokens",
            "code": "context_length_exceeded",
        },
    },
    "429": {"status": 429, "headers": {"retry-after": "7"}},
    "500": {"status": 500},
    "503": {"status": 503, "headers": {"retry-after": "3"}},
    "once": {"status": 503},
    "no-head": cut("close", "request"),
    "reset": cut("reset", "request"),
    "head-only": cut("close", 0),
    "in-first": cut("reset", 0, inside=True),
    "in-sixth": cut("close", 6, inside=True),
    "after-sixth": cut("close", 6),
    "garbage": {"body": "<html>"},
    "garbage-amid": {"inserted": "data: {]\n\n", "inserted_after_events": 6},
    "error-amid": {"error": {"message": "oom"}, "error_after_events": 6},
    "no-usage": {"usage": None},
    "odd-usage": {"usage": {"prompt_tokens": -1}},
    "no-end": {"done": False},
    "reasons": {"reasoning_tokens": 3, "cached_tokens": 2},
    "refuses": {"refuses": True},
    "calls": {"tool_calls": 2},
    "call-and-extras": {
        "calls": [{"name": "pay", "arguments": '{"fee": 1}', "extra_content": {"a": 1}}]
    },
    "filtered": {"finish_reason": "content_filter", "cache_write_tokens": 2},
    "odd-finish": {"finish_reason": "bored", "headers": {"x-engine": "1", "set-cookie": "a=b"}},
    "comments": {"comments": True, "line_end": "\r\n"},
    "pieces": {"split_bytes": 7, "ends_with_last_piece": True},
    "empty": {"text": ""},
}
"""How the engine answers, as scripts of the test upstream."""

ROUTES: dict[str, tuple[str, ...]] = {
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "azure": ("azure",),
    "pair": ("pair",),
    "openai>openai": ("openai", "spare-openai"),
    "openai>anthropic": ("openai", "spare-anthropic"),
    "anthropic>openai": ("anthropic", "spare-openai"),
}
"""The backend of the model that a case names, and that of its fallback."""
DIRECT: Final = ("openai", "anthropic", "azure")

GUARDS: dict[str, tuple[str, str, str] | None] = {
    "none": None,
    "request-match": ("request", "enforcing", "toll"),
    "request-pass": ("request", "enforcing", "heron"),
    "response-match": ("response", "enforcing", "gate"),
    "response-pass": ("response", "enforcing", "heron"),
    "monitoring-match": ("both", "monitoring", "toll"),
    "monitoring-pass": ("both", "monitoring", "heron"),
    "judge-fails": ("both", "enforcing", "heron unanswered"),
    "unanswered": ("both", "monitoring", "heron unanswered"),
    "capped": None,
    "unallowed": None,
}
"""The projects of each customer: direction, mode and word of the policy that applies to it."""
POLICIES: Final = tuple(name for name, policy in GUARDS.items() if policy is not None)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request, and how the engine answers it."""

    form: str
    is_stream: bool
    route: str
    guard: str = "none"
    fault: str = "none"
    oddity: str = "plain"

    @property
    def name(self) -> str:
        shape = "stream" if self.is_stream else "whole"
        return f"{self.form} {shape} {self.route} {self.guard} {self.fault} {self.oddity}"

    @property
    def word(self) -> str:
        """Return a word that only this request has, by which what it caused is found."""
        return f"w{crc32(self.name.encode()):08x}"

    @property
    def model(self) -> str:
        """Return its model: one of its own if it has a fallback, whose failures count for later."""
        return f"corpus/{self.word if '>' in self.route else self.route}"

    @property
    def script(self) -> Fields | None:
        if self.fault == "leaves":
            events = {"openai": 5, "azure": 6, "anthropic": 7}[self.route]
            return cut("stall", events if self.is_stream else "request")
        return FAULTS[self.fault]

    def body(self) -> bytes:
        """Return the body, as compact JSON or as it is written in the table."""
        if self.oddity in RAW:
            return self._filled(RAW[self.oddity])
        fields: Fields = {"model": "%MODEL%"}
        if self.form == "responses":
            fields["input"] = "%TEXT%"
        else:
            fields["messages"] = [{"role": "user", "content": "%TEXT%"}]
        if self.form == "messages":
            fields["max_tokens"] = 256
        if self.is_stream:
            fields["stream"] = True
        fields |= FORMS[self.form][1].get(self.oddity, {})
        return self._filled(json.dumps(fields, separators=(",", ":"), ensure_ascii=False))

    def headers(self, key: str) -> dict[str, str]:
        plain = {"authorization": "Bearer %KEY%", "content-type": "application/json"}
        sent = plain | HEADERS.get(self.oddity, {})
        return {name: value.replace("%KEY%", key) for name, value in sent.items() if value}

    def _filled(self, text: str) -> bytes:
        asked = f"Pay the toll {self.word}."
        return text.replace("%MODEL%", self.model).replace("%TEXT%", asked).encode()


def _every(share: int, **axes: Any) -> Iterator[Case]:  # noqa: ANN401 - values of any axis
    """Yield the product of the axes, or one of so many, which depends on its name alone."""
    for values in product(*axes.values()):
        case = Case(**dict(zip(axes, values, strict=True)))
        if crc32(case.name.encode()) // 7 % share == 0:
            yield case


def _drawn() -> Iterator[Case]:
    both = (False, True)
    for form, (_, oddities) in FORMS.items():
        odd = [*oddities, *HEADERS, *RAW]
        if form.startswith("count"):
            whole: Fields = {"form": [form], "is_stream": [False]}
            routes = ("openai", "anthropic") if form == "count" else ("openai",)
            yield from _every(1, **whole, route=routes, oddity=odd)
            yield from _every(1, **whole, route=DIRECT, fault=list(FAULTS)[:15])
            yield from _every(1, **whole, route=["openai", "openai>anthropic"], guard=GUARDS)
            continue
        shape: Fields = {"form": [form], "is_stream": both}
        yield from _every(1, **shape, route=DIRECT[:2], oddity=oddities)
        yield from _every(1, **shape, route=DIRECT[:1], oddity=[*HEADERS, *RAW])
        yield from _every(6, **shape, route=["azure", "pair"], oddity=odd)
        yield from _every(1, **shape, route=DIRECT, fault=FAULTS)
        yield from _every(2, **shape, route=list(ROUTES)[3:], fault=FAULTS)
        yield from _every(8, **shape, route=DIRECT[:2], guard=list(GUARDS)[1:], fault=FAULTS)
        yield from _every(24, **shape, route=list(ROUTES)[3:], guard=POLICIES, fault=FAULTS)
        yield from _every(24, **shape, route=DIRECT[:2], guard=list(GUARDS)[1:], oddity=odd)
        yield from _every(40, **shape, route=DIRECT[:2], fault=FAULTS, oddity=oddities)
        yield from _every(1, **shape, route=DIRECT, fault=["leaves"])
        shape["is_stream"] = [False]
        yield from _every(1, **shape, route=DIRECT[:2], guard=POLICIES, fault=["leaves"])


CASES: Final = {case.name: case for case in _drawn()}
assert len({case.word for case in CASES.values()}) == len(CASES)
