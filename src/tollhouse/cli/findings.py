"""What a check of `tollhouse doctor` has to say."""

from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    """A failure keeps the deployment from working as promised; a warning may."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


class Finding(Struct, frozen=True, kw_only=True):
    """One check, what it found, and what to do about it."""

    check: str
    outcome: Outcome
    found: str
    remedy: str | None


def ok(check: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(check=check, outcome=Outcome.OK, found=found, remedy=None)


def warning(check: str, found: str, remedy: str) -> Finding:
    """Worth a look."""
    return Finding(check=check, outcome=Outcome.WARNING, found=found, remedy=remedy)


def failure(check: str, found: str, remedy: str) -> Finding:
    """To be mended."""
    return Finding(check=check, outcome=Outcome.FAILURE, found=found, remedy=remedy)
