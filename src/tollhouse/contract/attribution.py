"""The wire types of attribution: what is stored, costs by value, and deletion of a value."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import ATTRIBUTION_PATTERN, NonNegative, ReportInstant
from tollhouse.contract.money import Money
from tollhouse.contract.origins import extension

DIMENSIONS_MAX = 4
RETENTION_DAYS_MAX = 400
AttributionDimension = Annotated[str, Meta(pattern=ATTRIBUTION_PATTERN)]


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


class AttributionQuery(Struct, frozen=True, kw_only=True):
    """The dimension and the range of costs by value, at most 31 days."""

    mark: ClassVar[Meta] = extension("OQ-240")

    dimension: AttributionDimension
    start_time: ReportInstant
    end_time: ReportInstant


class AttributedResult(Struct, frozen=True, kw_only=True):
    """Settled usage and costs of one value. `(unrecorded)` are requests without a stored value."""

    mark: ClassVar[Meta] = extension("OQ-240")

    object: Literal["organization.attribution.result"] = "organization.attribution.result"
    value: str
    amount: Money
    requests: NonNegative
    input_tokens: NonNegative
    cached_input_tokens: NonNegative
    output_tokens: NonNegative


class AttributedCosts(Struct, frozen=True, kw_only=True):
    """Costs by value, the dearest first. `total` is their sum, and that of the cost report."""

    mark: ClassVar[Meta] = extension("OQ-240")

    object: Literal["list"] = "list"
    dimension: str
    total: Money
    data: list[AttributedResult]


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
