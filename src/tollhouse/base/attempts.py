"""The attempts to answer a request. Only the last one may have succeeded."""

from typing import Final

from msgspec import Struct

ANSWERED: Final = "answered"


class Attempt(Struct, frozen=True):
    """One attempt: the model, the replica if one was called, and how it ended after how long."""

    model: str
    replica: str | None
    outcome: str
    ms: float
