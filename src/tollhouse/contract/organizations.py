"""The wire types of the caller's organization and of the judge of the gateway."""

from typing import ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import Uuid
from tollhouse.contract.origins import extension


class Judge(Struct, frozen=True, kw_only=True):
    """The model that evaluates policies. A demonstration judge knows only the example policies."""

    mark: ClassVar[Meta] = extension("OQ-206")

    model: str
    is_demonstration: bool


class Organization(Struct, frozen=True, kw_only=True):
    """The organization of the Admin key. `judge` is null if the gateway has none."""

    mark: ClassVar[Meta] = extension("OQ-206")

    object: Literal["organization"] = "organization"
    id: Uuid
    name: str
    created_at: int
    is_sandbox: bool
    judge: Judge | None
