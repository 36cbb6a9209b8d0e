"""What a backend can do wrong, and how an answer ends then, whole and streamed."""

from dataclasses import dataclass
from typing import Any

from tests.support.deployment import MODEL

Refusal = tuple[int, str]
ANSWERED = "answered"
BROKEN = "broken"
"""It ended by an error after the first byte."""
IMPATIENT_MODEL = "example/impatient"
"""Whose backend is given no time to begin."""
BACKEND: Refusal = (502, "backend_error")
BUSY: Refusal = (503, "server_is_overloaded")
LATE: Refusal = (504, "deadline_exceeded")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A script of the upstream, and how each form of the answer ends: refused, or so."""

    script: dict[str, Any]
    whole: Refusal | str
    streamed: Refusal | str
    model: str = MODEL

    def ending(self, *, is_stream: bool) -> Refusal | str:
        return self.streamed if is_stream else self.whole


def status(code: int, refusal: Refusal) -> Fault:
    return Fault(script={"status": code}, whole=refusal, streamed=refusal)


def cut(how: str, after: int | str, *, inside: bool = False) -> dict[str, Any]:
    return {"cut": {"how": how, "after": after, "inside": inside}}


FAULTS = {
    # After six events there is text in every dialect.
    "refuses the request": status(400, (422, "provider_validation_failed")),
    "denies us": status(401, BACKEND),
    "knows no such model": status(404, BACKEND),
    "is busy": status(429, BUSY),
    "fails": status(500, BACKEND),
    "is down": status(503, BACKEND),
    "hangs up": Fault(script=cut("close", "request"), whole=BACKEND, streamed=BACKEND),
    "resets": Fault(script=cut("reset", "request"), whole=BACKEND, streamed=BACKEND),
    "breaks off in a record": Fault(
        script=cut("close", 6, inside=True), whole=ANSWERED, streamed=BROKEN
    ),
    "breaks off in its only record": Fault(
        script=cut("reset", 0, inside=True), whole=BACKEND, streamed=BACKEND
    ),
    "says nonsense": Fault(script={"body": "<html>"}, whole=BACKEND, streamed=BACKEND),
    "fails with 200": Fault(
        script={"error": {"message": "oom"}, "error_after_events": 6},
        whole=BACKEND,
        streamed=BROKEN,
    ),
    "says nonsense between records": Fault(
        script={"inserted": "data: {]\n\n", "inserted_after_events": 6},
        whole=ANSWERED,
        streamed=BROKEN,
    ),
    "stands still before its answer": Fault(
        script=cut("stall", "request"), whole=LATE, streamed=LATE, model=IMPATIENT_MODEL
    ),
    "stands still after its head": Fault(
        script=cut("stall", 0), whole=LATE, streamed=LATE, model=IMPATIENT_MODEL
    ),
    "counts nothing": Fault(script={"usage": None}, whole=ANSWERED, streamed=ANSWERED),
    "counts nonsense": Fault(
        script={"usage": {"prompt_tokens": -1}}, whole=ANSWERED, streamed=ANSWERED
    ),
    "sends too long a record": Fault(
        script={"padding_bytes": 9 * 1024 * 1024}, whole=ANSWERED, streamed=BACKEND
    ),
    "ends without an end marker": Fault(script={"done": False}, whole=ANSWERED, streamed=ANSWERED),
}
