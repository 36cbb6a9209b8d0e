"""The steps of a move in their order. Each can be repeated.

| step | cell | if the command dies in it |
|---|---|---|
| freeze, drain, copy, verify copy | old | the freeze ends by itself at its time; export again |
| write, compare, verify | new | nothing is visible yet, or a frozen copy; import again |
| release | old | the organization is frozen or closed; release again |
| activate | new | it is frozen or served; activate again |
"""

from collections.abc import Callable
from enum import StrEnum


class MoveStep(StrEnum):
    """A step of a move, as the commands announce it."""

    FREEZE = "freeze"
    DRAIN = "drain"
    COPY = "copy"
    VERIFY_COPY = "verify copy"
    SEAL = "seal"
    WRITE = "write"
    COMPARE = "compare"
    VERIFY = "verify"
    ACKNOWLEDGE = "acknowledge"
    RELEASE = "release"
    PERMIT = "permit"
    ACTIVATE = "activate"


Announce = Callable[[MoveStep], None]
"""Tells that a step begins."""
