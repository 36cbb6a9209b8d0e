"""The wire types of models."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.origins import GIVEN, adopted, given

Modality = Literal["text", "image", "file", "audio", "video"]


class ModelAccess(Struct, frozen=True, kw_only=True):
    """Whether the caller may use the model, and the missing requirements if not."""

    mark: ClassVar[Meta] = GIVEN

    required_checks: list[str]
    """What an organization must have been granted to use the model."""
    available: bool
    """Whether the caller may use the model."""
    locked: bool
    """Whether the organization lacks one of the checks."""
    missing_requirements: list[str]
    """The checks that it lacks."""


class ModelPricing(Struct, frozen=True, kw_only=True):
    """Prices in USD as decimal strings, per token, image or request (OQ-78)."""

    mark: ClassVar[Meta] = GIVEN

    prompt: str
    """The price of a token that is read."""
    completion: str
    """The price of a token that is written."""
    image: str
    """The price of an image in a request."""
    request: str
    """The price of a request."""
    input_cache_read: str
    """The price of a token that is read from a cache."""


class Model(Struct, frozen=True, kw_only=True):
    """A model of the catalog."""

    mark: ClassVar[Meta] = GIVEN

    id: str
    """The name to send in `model`."""
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    """Who provides the model."""
    name: str
    """What people call the model."""
    display_name: str
    """The same as `name`, for clients that know this name."""
    access: ModelAccess
    """Whether the caller may use the model."""
    input_modalities: list[Modality]
    """The kinds of content that the model reads."""
    output_modalities: list[Modality]
    """The kinds of content that the model writes."""
    pricing: ModelPricing
    """What its use costs."""
    supported_sampling_parameters: list[str]
    """The sampling parameters that requests may have."""
    sampling_limits: dict[str, Any]
    """Further limits of these parameters, in the operator's words."""
    sampling_limits_revision: str
    """A digest of `sampling_limits`, which changes with them."""
    supported_features: list[str]
    """The options that requests may use. Others are refused with 501."""
    is_ready: bool
    """Whether a backend can answer at present."""
    quantization: str
    """The number format of its weights, or an empty text if that is not known."""
    context_length: int
    """The largest number of tokens read and written together."""
    max_output_length: int
    """The largest number of tokens written."""
    root: str
    """The underlying model, by default its own ID."""
    parent: Annotated[str | None, given(null="OQ-81")]
    """The model that it was adapted from, or null."""


class MessagesModel(Struct, frozen=True, kw_only=True):
    """A model of the catalog, in Anthropic's form."""

    mark: ClassVar[Meta] = adopted("OQ-219")

    type: Literal["model"] = "model"
    id: str
    """The name to send in `model`."""
    display_name: str
    """What people call the model."""
    created_at: str
    """When it was made, as RFC 3339 writes it; the beginning of 1970 if that is not known."""
    lifecycle: Literal["active"] = "active"
    """Always active: what the catalog lists can be called."""
    max_input_tokens: int
    """The largest number of tokens read and written together."""
    max_tokens: int
    """The largest number of tokens written."""


class MessagesModelList(Struct, frozen=True, kw_only=True):
    """All models that the key may use, in one page, in Anthropic's form."""

    mark: ClassVar[Meta] = adopted("OQ-219")

    data: list[MessagesModel]
    has_more: bool = False
    first_id: str | None
    last_id: str | None


class ModelList(Struct, frozen=True, kw_only=True):
    """All models that the key may use, in one page."""

    mark: ClassVar[Meta] = adopted("OQ-76")

    object: Literal["list"] = "list"
    data: list[Model]
