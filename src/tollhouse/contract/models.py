"""The wire types of models."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.origins import GIVEN, adopted, given

Modality = Literal["text", "image", "file", "audio", "video"]


class ModelAccess(Struct, frozen=True, kw_only=True):
    """Whether the caller may use the model, and the missing requirements if not."""

    mark: ClassVar[Meta] = GIVEN

    required_checks: list[str]
    available: bool
    locked: bool
    missing_requirements: list[str]


class ModelPricing(Struct, frozen=True, kw_only=True):
    """Prices in USD as decimal strings, per token, image or request (OQ-78)."""

    mark: ClassVar[Meta] = GIVEN

    prompt: str
    completion: str
    image: str
    request: str
    input_cache_read: str


class Model(Struct, frozen=True, kw_only=True):
    """A model of the catalog. `sampling_limits` is returned as it is configured (OQ-79)."""

    mark: ClassVar[Meta] = GIVEN

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    name: str
    display_name: str
    access: ModelAccess
    input_modalities: list[Modality]
    output_modalities: list[Modality]
    pricing: ModelPricing
    supported_sampling_parameters: list[str]
    sampling_limits: dict[str, Any]
    sampling_limits_revision: str
    supported_features: list[str]
    is_ready: bool
    quantization: str
    context_length: int
    max_output_length: int
    root: str
    parent: Annotated[str | None, given(null="OQ-81")]


class ModelList(Struct, frozen=True, kw_only=True):
    """All models that the key may use, in one page."""

    mark: ClassVar[Meta] = adopted("OQ-76")

    object: Literal["list"] = "list"
    data: list[Model]
