"""What can be wrong with a provider for a while, and where a healthy one stands beside it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tests.support.deployment import model

FIRST_EVENT_SECONDS: Final = 2
ANSWER_SECONDS: Final = 6
"""What a whole answer may take; without it nobody can tell a hang from a long answer."""
STEADY: Final = {"tokens": 8, "between_events_ms": 20}
MODEL_FIELDS: Final[dict[str, Any]] = {"features": [], "sampling_parameters": []}


class Layout(StrEnum):
    """Where the healthy provider is."""

    REPLICA = "replica"
    FALLBACK = "fallback"
    OTHER_DIALECT = "other dialect"


class Form(StrEnum):
    """What callers send. Half of all requests are streamed."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`script` is how the sick upstream answers, or `url` is where nobody does."""

    script: dict[str, Any] | None = None
    url: str | None = None
    is_billed_without_answer: bool = False
    is_slow: bool = False


def _status(code: int, **headers: str) -> Fault:
    return Fault(script={"status": code, "headers": headers}, is_billed_without_answer=True)


def _cut(how: str, after: int | str) -> Fault:
    return Fault(script={"cut": {"how": how, "after": after}})


FAULTS: Final = {
    "503": _status(503),
    "500": _status(500),
    "529": _status(529),
    "429 for 5 s": _status(429, **{"retry-after": "5"}),
    "429": _status(429),
    "refused": Fault(url="http://127.0.0.1:{closed_port}/v1", is_billed_without_answer=True),
    "reset": _cut("reset", "request"),
    "no TLS": Fault(url="https://127.0.0.1:{open_port}/v1", is_billed_without_answer=True),
    "no name": Fault(url="http://engine.invalid:8000/v1", is_billed_without_answer=True),
    "hang": _cut("stall", "request"),
    "hang after head": _cut("stall", 0),
    "HTML": Fault(script={"body": "<html></html>", "content_type": "text/html"}),
    "slow": Fault(script=STEADY | {"between_events_ms": 200}, is_slow=True),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fault in one layout, for callers of one form.

    `is_billed` says that the provider bills what it did not answer, so that no call moves on from
    it: only the calls after its ejection are answered.
    """

    fault: str
    layout: Layout
    form: Form
    has_default_seconds: bool = False
    is_billed: bool = False

    @property
    def name(self) -> str:
        """Return the name of the cell, which is that of its model too."""
        words = (self.fault, self.layout, self.form, *["default"] * self.has_default_seconds)
        words += ("billed",) * self.is_billed
        return "-".join(words).replace(" ", "-")

    def backends(self, sick_url: str, well_url: str) -> dict[str, Any]:
        """Return the configuration of the cell's backends."""
        fault = FAULTS[self.fault]
        own: dict[str, Any] = {
            "bills_without_answer": fault.is_billed_without_answer or self.is_billed
        }
        if self.layout is Layout.REPLICA:
            return {self.name: own | {"replicas": [sick_url, well_url]}}
        spare: dict[str, Any] = {"replicas": [well_url]}
        if self.layout is Layout.OTHER_DIALECT:
            spare["dialect"] = "anthropic"
        return {self.name: own | {"replicas": [sick_url]}, f"{self.name}-spare": spare}

    def models(self) -> dict[str, Any]:
        """Return the configuration of the cell's models."""
        times: dict[str, Any] = {"answer_seconds": ANSWER_SECONDS}
        if not self.has_default_seconds:
            times["first_event_seconds"] = FIRST_EVENT_SECONDS
        spare = f"{self.name}-spare"
        if self.layout is Layout.REPLICA:
            return {self.name: model(backend=self.name, **times, **MODEL_FIELDS)}
        return {
            self.name: model(backend=self.name, fallbacks=[spare], **times, **MODEL_FIELDS),
            spare: model(backend=spare, **MODEL_FIELDS),
        }


def every_cell() -> list[Cell]:
    """Return all cells: chat in each, others pairwise, three with defaults, two that are billed."""
    cells = [
        Cell(fault=fault, layout=layout, form=Form.CHAT)
        for fault, layout in itertools.product(FAULTS, Layout)
    ]
    return [*cells, *_pairwise(), *_with_defaults(), *_billed()]


def _pairwise() -> Iterator[Cell]:
    """Each form with each fault and with each layout."""
    layouts = list(Layout)
    for number, fault in enumerate(FAULTS):
        for offset, form in enumerate((Form.RESPONSES, Form.MESSAGES)):
            yield Cell(fault=fault, layout=layouts[(number + offset) % len(layouts)], form=form)


def _with_defaults() -> Iterator[Cell]:
    for fault in ("hang", "hang after head", "503"):
        yield Cell(fault=fault, layout=Layout.FALLBACK, form=Form.CHAT, has_default_seconds=True)


def _billed() -> Iterator[Cell]:
    for fault in ("reset", "hang"):
        yield Cell(fault=fault, layout=Layout.FALLBACK, form=Form.CHAT, is_billed=True)


def few_cells() -> list[Cell]:
    """Return twelve cells with twelve faults, in which each layout and form has its turn."""
    layouts, forms = itertools.cycle(Layout), itertools.cycle((Form.CHAT, *Form))
    return [
        Cell(fault=fault, layout=next(layouts), form=next(forms))
        for fault in FAULTS
        if fault != "529"
    ]
