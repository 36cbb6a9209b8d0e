"""Which settings of a backend belong together, by the dialect that it speaks."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend, Feature, Modality, Model, SamplingParameter

MESSAGES_FEATURES: Final[frozenset[Feature]] = frozenset(
    {"reasoning", "reasoning_budget", "structured_outputs", "tools"}
)
MESSAGES_PARAMETERS: Final[frozenset[SamplingParameter]] = frozenset(
    {"stop", "temperature", "top_p"}
)
MESSAGES_INPUTS: Final[frozenset[Modality]] = frozenset({"text", "image", "file"})
MESSAGES_OUTPUTS: Final[frozenset[Modality]] = frozenset({"text"})
"""What the dialect of Anthropic can express (OQ-228)."""


def check(path: str, backend: Backend, table: Mapping[str, Any]) -> Backend:
    """Return the backend with the defaults of its dialect. Raises `InvalidCatalog`.

    `table` has the settings that the operator wrote.
    """
    if backend.dialect == "azure":
        return _azure(path, backend, table)
    if backend.api_version is not None:
        raise InvalidCatalog(f"{path}.api_version", "only for the dialect 'azure'")
    return _anthropic(path, backend, table) if backend.dialect == "anthropic" else backend


def check_model(path: str, model: Model, backend: Backend, table: Mapping[str, Any]) -> Model:
    """Return the model with the defaults of its backend's dialect. Raises `InvalidCatalog`.

    What the dialect cannot express must not be declared: a request with it would lose it.
    """
    if backend.dialect != "anthropic":
        return model
    if "sampling_parameters" not in table:
        model = replace(model, sampling_parameters=MESSAGES_PARAMETERS)
    declared: tuple[tuple[str, Iterable[str], frozenset[str]], ...] = (
        ("features", model.features, MESSAGES_FEATURES),
        ("sampling_parameters", model.sampling_parameters, MESSAGES_PARAMETERS),
        ("input_modalities", model.input_modalities, MESSAGES_INPUTS),
        ("output_modalities", model.output_modalities, MESSAGES_OUTPUTS),
    )
    for field, values, possible in declared:
        for value in sorted(set(values) - possible):
            reason = (
                f"the dialect 'anthropic' has no '{value}'; possible are "
                f"{', '.join(sorted(possible))}"
            )
            raise InvalidCatalog(f"{path}.{field}", reason)
    return model


def _anthropic(path: str, backend: Backend, table: Mapping[str, Any]) -> Backend:
    for index, url in enumerate(backend.replicas):
        if not urlsplit(url).path.strip("/"):
            reason = (
                "the dialect 'anthropic' appends /messages: write the whole path, as in"
                " https://api.anthropic.com/v1"
            )
            raise InvalidCatalog(f"{path}.replicas[{index}]", reason)
    if backend.takes:
        raise InvalidCatalog(f"{path}.takes", "only for the dialects 'openai' and 'azure'")
    if backend.reasons_outside_bound:
        reason = "the output bound of the dialect 'anthropic' includes thinking"
        raise InvalidCatalog(f"{path}.reasons_outside_bound", reason)
    if backend.counts_tokens_by == "tokenize":
        reason = "the dialect 'anthropic' counts by 'messages'"
        raise InvalidCatalog(f"{path}.counts_tokens_by", reason)
    if "stops_when_cancelled" not in table:
        # The output is reported at the end alone, and most of it may be hidden thinking.
        backend = replace(backend, stops_when_cancelled=False)
    if "health_path" in table:
        return backend
    base = urlsplit(backend.replicas[0]).path.rstrip("/")
    return replace(backend, health_path=f"{base}/models")


def _azure(path: str, backend: Backend, table: Mapping[str, Any]) -> Backend:
    if backend.api_version is None:
        reason = "needed for the dialect 'azure', such as '2024-10-21'"
        raise InvalidCatalog(f"{path}.api_version", reason)
    for index, url in enumerate(backend.replicas):
        if "openai" in urlsplit(url).path.split("/"):
            reason = (
                "the dialect 'azure' appends /openai/deployments/DEPLOYMENT: leave out the path, as"
                " in https://NAME.openai.azure.com. For a URL that ends with /openai/v1, use the"
                " dialect 'openai'."
            )
            raise InvalidCatalog(f"{path}.replicas[{index}]", reason)
    if backend.counts_tokens_by != "none":
        raise InvalidCatalog(f"{path}.counts_tokens_by", "the dialect 'azure' counts no tokens")
    if "health_path" in table:
        return backend
    return replace(backend, health_path=f"/openai/models?api-version={backend.api_version}")
