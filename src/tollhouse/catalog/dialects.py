"""Which settings of a backend belong together, by the dialect that it speaks."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend


def check(path: str, backend: Backend, table: Mapping[str, Any]) -> Backend:
    """Return the backend with the defaults of its dialect. Raises `InvalidCatalog`.

    `table` has the settings that the operator wrote.
    """
    if backend.dialect == "azure":
        return _azure(path, backend, table)
    if backend.api_version is not None:
        raise InvalidCatalog(f"{path}.api_version", "only for the dialect 'azure'")
    return backend


def _azure(path: str, backend: Backend, table: Mapping[str, Any]) -> Backend:
    if backend.api_version is None:
        reason = "needed for the dialect 'azure', such as '2024-10-21'"
        raise InvalidCatalog(f"{path}.api_version", reason)
    for index, url in enumerate(backend.replicas):
        if "/openai" in url:
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
