"""Types of the catalog: models, backends and the judge.

The configuration is parsed into them; `rules` checks what depends on several fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from tollhouse.base.dialects import Dialect
from tollhouse.base.permissions import CHECK_NAME_PATTERN

COUNT_MAX = 1_000_000_000
REPLICAS_MAX = 1_000
ALIASES_MAX = 100
FALLBACKS_MAX = 4
CREATED_MAX = 253_402_300_799
"""The last second of year 9999."""

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
PositiveInt = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
DecimalText = Annotated[str, Meta(max_length=40)]
CheckName = Annotated[str, Meta(pattern=CHECK_NAME_PATTERN)]
ReplicaName = Annotated[str, Meta(pattern=CHECK_NAME_PATTERN)]
Modality = Literal["text", "image", "file", "audio", "video"]
SamplingParameter = Literal[
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "n",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
]
"""Optional request fields. A request with one that the model does not declare gets 501."""
Feature = Literal[
    "cache_salt",
    "functions",
    "json_mode",
    "prediction",
    "prompt_cache_retention",
    "prompt_logprobs",
    "reasoning",
    "reasoning_budget",
    "service_tier",
    "structured_outputs",
    "tools",
    "verbosity",
    "web_search",
]
"""Abilities of a model beside text. Each allows the request fields that need it."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultracode"]
Quantization = Literal[
    "",
    "int4",
    "int8",
    "fp4",
    "mxfp4",
    "nvfp4",
    "fp6",
    "fp8",
    "mxfp8",
    "fp16",
    "bf16",
    "fp32",
]
"""The values of OpenRouter (OQ-80); empty if unknown."""
TokenizerFamilyName = Literal["bytes", "nfc", "nfkc"]
Counter = Literal["messages", "tokenize", "none"]
ApiVersion = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.-]{0,63}\Z")]
Extra = Literal[
    "cache_salt",
    "continuous_usage_stats",
    "max_completion_tokens",
    "prompt_cache_key",
    "timings_per_token",
]
CONTINUOUS_USAGE: Final[frozenset[Extra]] = frozenset(
    {"continuous_usage_stats", "timings_per_token"}
)
"""What makes an engine report the usage so far with every record that has text."""


class Backend(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An engine or provider, on one or more equal replicas.

    `replicas` are base URLs such as `http://10.0.0.7:8000/v1`, which no customer sees.
    `replica_names` stand for them; without any, the backend's name and the position do.
    `dialect` is the API that it speaks; `api_version` belongs to that of Azure.
    `bills_without_answer`: it may charge for a call that got no answer. `stops_when_cancelled`: it
    stops billing when the connection closes. `takes` lists request fields beyond OpenAI's that it
    accepts, and does as they say: with `continuous_usage_stats` or llama.cpp's `timings_per_token`
    its last report is charged.
    `counts_exactly`: it bills a prompt exactly as it counts it. `ca_certificates`, in PEM form, are
    the authorities that its certificates may come from, instead of the system's.
    """

    replicas: Annotated[tuple[str, ...], Meta(min_length=1, max_length=REPLICAS_MAX)]
    replica_names: tuple[ReplicaName, ...] = ()
    dialect: Dialect = "openai"
    api_version: ApiVersion | None = None
    api_key: str | None = None
    ca_certificates: str | None = None
    health_path: Text = "/health"
    bills_without_answer: bool = False
    stops_when_cancelled: bool = True
    fetches_images_safely: bool = False
    reasons_outside_bound: bool = False
    bills_prompt_per_choice: bool = False
    takes: frozenset[Extra] = frozenset()
    counts_tokens_by: Counter = "none"
    counts_exactly: bool = False
    connections_max: PositiveInt = 1_000
    connect_seconds: Seconds = 5.0
    first_event_seconds: Seconds | None = None
    idle_seconds: Seconds = 60.0
    total_seconds: Seconds = 580.0

    def __repr__(self) -> str:
        return f"Backend(replicas={self.replicas!r})"


class Pricing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per unit, as decimal text with at most twelve decimals (OQ-78).

    Input that is read from or written to a cache costs as much as the prompt without a price of its
    own, reasoning as much as the completion.
    `pricing.unit_prices` returns all prices as numbers.
    """

    prompt: DecimalText
    completion: DecimalText
    image: DecimalText = "0"
    request: DecimalText = "0"
    input_cache_read: DecimalText | None = None
    input_cache_write: DecimalText | None = None
    reasoning: DecimalText | None = None


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model. Without `upstream_model` its ID is sent to the backend.

    `default_output_tokens` is its output bound for requests without one (OQ-217).
    `drops_unsupported_tools`: tools that only a provider can run, such as a web search, are left
    out instead of refused if the model lacks them (OQ-216). `aliases` are further names in
    requests. `fallbacks` are IDs of models that are tried in this order if the backend fails before
    an answer has begun (OQ-226). `first_event_seconds` bounds the wait for the first event of a
    stream, and `answer_seconds` that for a whole answer, before another replica or model is asked.
    """

    backend: str
    pricing: Pricing
    context_length: PositiveInt
    max_output_length: PositiveInt
    default_output_tokens: PositiveInt | None = None
    drops_unsupported_tools: bool = False
    first_event_seconds: Seconds | None = None
    answer_seconds: Seconds | None = None
    aliases: Annotated[tuple[Text, ...], Meta(max_length=ALIASES_MAX)] = ()
    fallbacks: Annotated[tuple[Text, ...], Meta(max_length=FALLBACKS_MAX)] = ()
    tokenizer: TokenizerFamilyName | None = None
    upstream_model: Text | None = None
    display_name: Text | None = None
    owned_by: Text = "tollhouse"
    created: Annotated[int, Meta(ge=0, le=CREATED_MAX)] = 0
    input_modalities: tuple[Modality, ...] = ("text",)
    output_modalities: tuple[Modality, ...] = ("text",)
    template_tokens: Annotated[int, Meta(ge=0, le=COUNT_MAX)] | None = None
    image_tokens: PositiveInt | None = None
    features: frozenset[Feature] = frozenset()
    sampling_parameters: frozenset[SamplingParameter] = frozenset(
        {"temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop"}
    )
    sampling_limits: dict[str, Any] = {}
    effort_names: dict[Effort, Text] = field(default_factory=lambda: {"ultracode": "xhigh"})
    beta_flags: frozenset[Text] = frozenset()
    required_checks: tuple[CheckName, ...] = ()
    quantization: Quantization = ""
    root: Text | None = None
    parent: Text | None = None


class CatalogJudge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that answers the questions of policies, on one of the backends.

    `model` is its name at the backend. `request_tokens_max` limits the tokens of all questions
    about one request, `deadline_seconds` the time of all questions about one content.
    `organization_tokens_per_minute` limits the tokens of one organization in each worker, once for
    enforcing and once for monitoring. The default allows ten requests of the largest size, or 4,000
    requests with 2,000 tokens and five policies.
    """

    backend: str
    model: Text
    context_length: PositiveInt
    question_tokens_max: PositiveInt = 1_024
    asks: Literal["content_first", "question_first"] = "content_first"
    reads: Literal["top_logprobs", "token_ids"] = "top_logprobs"
    has_tokenizer: bool = True
    bytes_per_token: Annotated[int, Meta(ge=1, le=16)] = 3
    coverage_min_basis_points: Annotated[int, Meta(ge=1, le=10_000)] = 5_000
    deadline_seconds: Seconds = 30.0
    request_tokens_max: PositiveInt = 1_000_000
    organization_tokens_per_minute: PositiveInt = 10_000_000
    request_questions_max: PositiveInt = 8
    organization_questions_max: PositiveInt = 64
    worker_questions_max: PositiveInt = 256
    verdicts_max: PositiveInt = 100_000
    verdict_seconds: Seconds = 600.0
    monitoring_queue_size: PositiveInt = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """The checked catalog of a configuration. `aliases` has the ID of the model of each alias."""

    models: Mapping[str, Model]
    backends: Mapping[str, Backend]
    judge: CatalogJudge | None = None
    aliases: Mapping[str, str] = dataclass_field(default_factory=dict[str, str])
