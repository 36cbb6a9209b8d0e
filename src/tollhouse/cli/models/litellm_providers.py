"""The providers that LiteLLM names before a slash, and the backends that they become here."""

import re
from dataclasses import dataclass, field
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from tollhouse.base.dialects import Dialect

ENVIRONMENT: Final = "os.environ/"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENAI_NAMES: Final = re.compile(r"gpt-|chatgpt-|o[1-9](?:-|$)")
_HOSTED: Final = {"health_path": "/v1/models", "bills_without_answer": True}
_VLLM: Final = {
    "takes": ["cache_salt", "continuous_usage_stats"],
    "counts_tokens_by": "messages",
    "counts_exactly": True,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """A backend without its address and key. `appended` continues an address that lacks it.

    The price map has the models of a hosted one, whose longest prompt is the whole context.
    """

    name: str
    address: str | None = None
    key_variable: str | None = None
    appended: str = ""
    dialect: str | None = None
    is_hosted: bool = False
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def _hosted(name: str, address: str, **settings: object) -> Provider:
    variable = f"{name.upper().replace('-', '_')}_API_KEY"
    return Provider(
        name=name,
        address=address,
        key_variable=variable,
        is_hosted=True,
        settings={**_HOSTED, **settings},
    )


_OPENAI: Final = _hosted("openai", "https://api.openai.com/v1", takes=["prompt_cache_key"])
_COMPATIBLE: Final = Provider(name="openai-compatible", settings={"bills_without_answer": True})
PROVIDERS: Final[dict[str, Provider]] = {
    "openai": _OPENAI,
    "custom_openai": _COMPATIBLE,
    "openai_like": _COMPATIBLE,
    "hosted_vllm": Provider(name="vllm", appended="/v1", settings=_VLLM),
    "vllm": Provider(name="vllm", appended="/v1", settings=_VLLM),
    "ollama": Provider(name="ollama", address="http://localhost:11434", appended="/v1"),
    "ollama_chat": Provider(name="ollama", address="http://localhost:11434", appended="/v1"),
    "lm_studio": Provider(name="lm-studio"),
    "llamafile": Provider(name="llamafile"),
    "openrouter": _hosted("openrouter", "https://openrouter.ai/api/v1"),
    "groq": _hosted("groq", "https://api.groq.com/openai/v1"),
    "deepseek": _hosted("deepseek", "https://api.deepseek.com/v1"),
    "mistral": _hosted("mistral", "https://api.mistral.ai/v1"),
    "xai": _hosted("xai", "https://api.x.ai/v1"),
    "azure": Provider(
        name="azure",
        key_variable="AZURE_API_KEY",
        dialect="azure",
        is_hosted=True,
        settings={"bills_without_answer": True},
    ),
    "anthropic": Provider(
        name="anthropic",
        address="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        appended="/v1",
        dialect="anthropic",
        is_hosted=True,
        settings={"bills_without_answer": True, "counts_tokens_by": "messages"},
    ),
}


def provider_of(prefix: str | None) -> Provider | str:
    """Return the provider of a prefix, or why its models cannot be mapped."""
    if prefix is None:
        return "its name has no provider: write it as PROVIDER/MODEL"
    provider = PROVIDERS.get(prefix)
    if provider is None or (provider.dialect or "openai") not in get_args(Dialect):
        return f"Tollhouse has no backend for the provider {prefix!r}"
    return provider


def split_model(name: str) -> tuple[str | None, str]:
    """Return the provider of a model of LiteLLM, or None if its name has none, and the rest."""
    prefix, slash, rest = name.partition("/")
    if slash and rest:
        return prefix, rest
    return ("openai" if _OPENAI_NAMES.match(name) else None), name


def variable_of(value: object) -> str | None:
    """Return the variable that a reference such as `os.environ/NAME` names, or None."""
    if not isinstance(value, str) or not value.startswith(ENVIRONMENT):
        return None
    name = value.removeprefix(ENVIRONMENT)
    return name if _VARIABLE.fullmatch(name) else None


def address_of(value: object, provider: Provider) -> str | None:
    """Return an address as a replica, or None if it has a part that a replica must not have."""
    if not isinstance(value, str):
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    is_plain = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
    if not is_plain or parts.query or parts.fragment:
        return None
    address = value.rstrip("/")
    return address if address.endswith(provider.appended) else address + provider.appended
