"""The wire types of the caller's organization and of the judge of the gateway."""

from typing import ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import Uuid
from tollhouse.contract.origins import extension


class Judge(Struct, frozen=True, kw_only=True):
    """The model that evaluates policies."""

    mark: ClassVar[Meta] = extension("OQ-206")

    model: str
    """The model that judges."""
    is_demonstration: bool
    """Whether it is the judge of a trial, which knows only some kinds of question."""


class Organization(Struct, frozen=True, kw_only=True):
    """The organization of the Admin key."""

    mark: ClassVar[Meta] = extension("OQ-206")

    object: Literal["organization"] = "organization"
    id: Uuid
    name: str
    created_at: int
    is_sandbox: bool
    """Whether credit is free, because the gateway is for trying."""
    judge: Judge | None
    """The model that evaluates policies, or null if the gateway has none."""
