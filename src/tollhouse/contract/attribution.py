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
    """The fields whose values are stored with the costs of a request."""
    retention_days: Annotated[int, Meta(ge=1, le=RETENTION_DAYS_MAX)] = 30
    """After how many days values are removed."""


class AttributionSettings(Struct, frozen=True, kw_only=True):
    """What is stored of requests, and for how many days."""

    mark: ClassVar[Meta] = extension("OQ-240")

    id: str
    """The organization."""
    object: Literal["organization.attribution"] = "organization.attribution"
    dimensions: list[str]
    """The fields whose values are stored with the costs of a request."""
    retention_days: int
    """After how many days values are removed."""


class DeleteAttributedValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored value to delete."""

    mark: ClassVar[Meta] = extension("OQ-241")

    dimension: AttributionDimension
    """The field whose value is deleted."""
    value: Annotated[str, Meta(min_length=1, max_length=512)]
    """What callers sent in the field."""


class AttributedValueDeleted(Struct, frozen=True, kw_only=True):
    """The deletion of a stored value. Its costs stay."""

    mark: ClassVar[Meta] = extension("OQ-241")

    id: str
    """The organization."""
    object: Literal["organization.attribution.value.deleted"] = (
        "organization.attribution.value.deleted"
    )
    deleted: bool
    """Whether it was stored on any day."""
    days: NonNegative
    """The number of days on which the value was stored."""
