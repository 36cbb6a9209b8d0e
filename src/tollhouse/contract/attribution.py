"""The wire types of attribution: what is stored, and deletion of a value."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import AttributionDimension, NonNegative
from tollhouse.contract.origins import extension

DIMENSIONS_MAX = 4
RETENTION_DAYS_MAX = 400


class SetAttribution(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dimensions of requests whose values are stored, and for how many days.

    An empty list stores none, which is the default: values may be personal data.
    """

    mark: ClassVar[Meta] = extension("OQ-240")

    dimensions: Annotated[list[AttributionDimension], Meta(max_length=DIMENSIONS_MAX)]
    retention_days: Annotated[int, Meta(ge=1, le=RETENTION_DAYS_MAX)] = 30


class AttributionSettings(Struct, frozen=True, kw_only=True):
    """What is stored of requests, and for how many days. `id` is the organization's."""

    mark: ClassVar[Meta] = extension("OQ-240")

    id: str
    object: Literal["organization.attribution"] = "organization.attribution"
    dimensions: list[str]
    retention_days: int


class DeleteAttributedValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored value to delete."""

    mark: ClassVar[Meta] = extension("OQ-241")

    dimension: AttributionDimension
    value: Annotated[str, Meta(min_length=1, max_length=512)]


class AttributedValueDeleted(Struct, frozen=True, kw_only=True):
    """The days on which the value was stored. Its costs stay. `id` is the organization's."""

    mark: ClassVar[Meta] = extension("OQ-241")

    id: str
    object: Literal["organization.attribution.value.deleted"] = (
        "organization.attribution.value.deleted"
    )
    deleted: bool
    days: NonNegative
