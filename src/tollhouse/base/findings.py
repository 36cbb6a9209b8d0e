"""Findings of checks, such as those of `tollhouse doctor`."""

from enum import StrEnum

from msgspec import Struct


class FindingOutcome(StrEnum):
    """A failure breaks the deployment now; a warning can break it later."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


class Finding(Struct, frozen=True, kw_only=True):
    """One check, what it found, and what to do about it."""

    check: str
    outcome: FindingOutcome
    found: str
    remedy: str | None


def ok(check: str, found: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check=check, outcome=FindingOutcome.OK, found=found, remedy=None)


def warning(check: str, found: str, remedy: str) -> Finding:
    """Return a finding that may become a failure."""
    return Finding(check=check, outcome=FindingOutcome.WARNING, found=found, remedy=remedy)


def failure(check: str, found: str, remedy: str) -> Finding:
    """Return a finding that must be corrected."""
    return Finding(check=check, outcome=FindingOutcome.FAILURE, found=found, remedy=remedy)
