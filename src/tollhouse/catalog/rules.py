"""Parsing and checking the catalog of the configuration."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tollhouse.base.errors import did_you_mean
from tollhouse.catalog import dialects, names, pricing, replicas
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend, Catalog, CatalogJudge, Model, Pricing

Tables = Mapping[str, Mapping[str, Any]]
"""TOML tables by name."""

NO_JUDGE: Final[Mapping[str, Any]] = {}
MODEL_ID_LENGTH_MAX: Final = 200
REVISION_LENGTH: Final = 16
JUDGED_TOKENS_MIN: Final = 512
MOVED_FIELDS: Final[Mapping[str, str]] = {
    "held_request_bytes_max": "inference.buffer_request_bytes",
    "held_worker_bytes_max": "inference.buffer_worker_bytes",
    "watched_max": "judge.monitoring_queue_size",
}
"""The present names of settings that were renamed."""
_BACKEND_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HEALTH_PATH = re.compile(r"/[!\"$-~]*", re.ASCII)
_FAULT_PLACE = re.compile(r" - at (?:`key` in )?`\$(?P<place>[^`]*)`\Z")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*)`\Z", re.DOTALL)
_FIELDS: Final = (
    *("api_key_variable", "api_key_file", "ca_file"),
    *(name for name in Backend.__struct_fields__ if name not in ("api_key", "ca_certificates")),
    *Model.__struct_fields__,
    *Pricing.__struct_fields__,
    *CatalogJudge.__struct_fields__,
)
"""The field names of a configuration."""

StructT = TypeVar("StructT", bound=Struct)


def parse(backends: Tables, models: Tables, judge: Mapping[str, Any] = NO_JUDGE) -> Catalog:
    """Return the catalog. Raises `InvalidCatalog` for the first fault.

    Each backend already has its `api_key`, if it needs one. Without a judge, requests to which a
    policy applies are refused.
    """
    parsed = {name: _backend(name, table) for name, table in backends.items()}
    offered = {model_id: _model(model_id, table, parsed) for model_id, table in models.items()}
    paths = {model_id: f"models.{_quoted(model_id)}" for model_id in offered}
    names.check_fallbacks(paths, offered)
    return Catalog(
        backends=parsed,
        models=offered,
        judge=_judge(judge, parsed) if judge else None,
        aliases=names.aliases(paths, offered),
    )


def limits_revision(model: Model) -> str:
    """Return an opaque digest of the sampling limits (OQ-79)."""
    content = msgspec.json.encode(model.sampling_limits, order="sorted")
    return hashlib.sha256(content).hexdigest()[:REVISION_LENGTH]


def _backend(name: str, table: Mapping[str, Any]) -> Backend:
    path = f"backends.{_quoted(name)}"
    if _BACKEND_NAME.fullmatch(name) is None:
        reason = "a name has 1 to 64 letters, digits, '.', '_' and '-', not first a sign"
        raise InvalidCatalog(path, reason)
    backend = dialects.check(path, _converted(path, table, Backend), table)
    if _HEALTH_PATH.fullmatch(backend.health_path) is None:
        reason = "expected visible ASCII that begins with '/' and has no '#'"
        raise InvalidCatalog(f"{path}.health_path", reason)
    if backend.counts_exactly and backend.counts_tokens_by == "none":
        raise InvalidCatalog(f"{path}.counts_exactly", "needs counts_tokens_by")
    urls = replicas.checked(f"{path}.replicas", backend.replicas)
    replica_names = replicas.names(f"{path}.replica_names", name, backend)
    return msgspec.structs.replace(backend, replicas=urls, replica_names=replica_names)


def _model(model_id: str, table: Mapping[str, Any], backends: Mapping[str, Backend]) -> Model:
    path = f"models.{_quoted(model_id)}"
    if not 0 < len(model_id) <= MODEL_ID_LENGTH_MAX or not model_id.isprintable():
        reason = f"an ID has 1 to {MODEL_ID_LENGTH_MAX} characters, all of them printable"
        raise InvalidCatalog(path, reason)
    model = _converted(path, table, Model)
    pricing.check(f"{path}.pricing", model.pricing)
    backend = _named(path, model.backend, backends)
    model = dialects.check_model(path, model, backend, table)
    _check(path, (*_model_rules(model), *_backend_rules(backend, model)))
    return model


def _judge(table: Mapping[str, Any], backends: Mapping[str, Backend]) -> CatalogJudge:
    judge = _converted("judge", table, CatalogJudge)
    backend = _named("judge", judge.backend, backends)
    _check("judge", _judge_rules(judge, backend))
    return judge


def _named(path: str, name: str, backends: Mapping[str, Backend]) -> Backend:
    backend = backends.get(name)
    if backend is None:
        reason = f"there is no such backend{did_you_mean(name, backends)}"
        raise InvalidCatalog(f"{path}.backend", reason)
    return backend


def _check(path: str, rules: Iterable[tuple[str, bool, str]]) -> None:
    for field, holds, reason in rules:
        if not holds:
            raise InvalidCatalog(f"{path}.{field}", reason)


def _judge_rules(judge: CatalogJudge, backend: Backend) -> tuple[tuple[str, bool, str], ...]:
    """Return the rules for a judge: the field, whether it is valid, and the fault."""
    left_over = judge.context_length - judge.question_tokens_max
    return (
        (
            "backend",
            backend.dialect != "anthropic",
            "a judge needs log probabilities, which the dialect 'anthropic' does not have",
        ),
        (
            "question_tokens_max",
            left_over >= JUDGED_TOKENS_MIN,
            f"leaves less than {JUDGED_TOKENS_MIN} tokens of context_length for the content",
        ),
        (
            "reads",
            judge.reads == "top_logprobs" or judge.has_tokenizer,
            "'token_ids' needs has_tokenizer",
        ),
        (
            "request_tokens_max",
            judge.request_tokens_max <= judge.organization_tokens_per_minute,
            "more than organization_tokens_per_minute",
        ),
        (
            "request_questions_max",
            judge.request_questions_max <= judge.organization_questions_max,
            "more than organization_questions_max",
        ),
        (
            "organization_questions_max",
            judge.organization_questions_max <= judge.worker_questions_max,
            "more than worker_questions_max",
        ),
    )


def _model_rules(model: Model) -> tuple[tuple[str, bool, str], ...]:
    """Return the rules for a model: the field, whether it is valid, and the fault."""
    sees_images = "image" in model.input_modalities
    costs_images = pricing.unit_prices(model.pricing).image_pico_usd > 0
    parameters, features = model.sampling_parameters, model.features
    images_only = "only for a model that has 'image' among its input_modalities"
    repeated = "contains a value twice"
    return (
        (
            "max_output_length",
            model.max_output_length <= model.context_length,
            "more than context_length",
        ),
        (
            "default_output_tokens",
            (model.default_output_tokens or 1) <= model.max_output_length,
            "more than max_output_length",
        ),
        ("input_modalities", bool(model.input_modalities), "at least one is needed"),
        ("output_modalities", bool(model.output_modalities), "at least one is needed"),
        ("input_modalities", _are_distinct(model.input_modalities), repeated),
        ("output_modalities", _are_distinct(model.output_modalities), repeated),
        ("required_checks", _are_distinct(model.required_checks), repeated),
        (
            "template_tokens",
            model.template_tokens is None or model.tokenizer is not None,
            "needs tokenizer: without it the whole context is reserved for a prompt",
        ),
        ("image_tokens", sees_images or model.image_tokens is None, images_only),
        ("pricing.image", sees_images or not costs_images, images_only),
        (
            "sampling_parameters",
            "top_logprobs" not in parameters or "logprobs" in parameters,
            "'top_logprobs' needs 'logprobs'",
        ),
        (
            "features",
            "reasoning_budget" not in features or "reasoning" in features,
            "'reasoning_budget' needs 'reasoning'",
        ),
        ("sampling_limits", _is_json(model.sampling_limits), "has a value that JSON does not have"),
    )


def _backend_rules(backend: Backend, model: Model) -> tuple[tuple[str, bool, str], ...]:
    return (
        (
            "features",
            "cache_salt" not in model.features or "cache_salt" in backend.takes,
            "'cache_salt' needs a backend that takes it",
        ),
    )


def _converted(path: str, table: Mapping[str, Any], type_: type[StructT]) -> StructT:
    try:
        return msgspec.convert(table, type_)
    except msgspec.ValidationError as error:
        text = str(error)
    found = _FAULT_PLACE.search(text)
    place, fault = (found["place"], text[: found.start()]) if found else ("", text)
    unknown = _UNKNOWN_FIELD.match(fault)
    hint = _hint(unknown["name"]) if unknown else ""
    raise InvalidCatalog(f"{path}{place}", fault + hint)


def _hint(unknown: str) -> str:
    moved = MOVED_FIELDS.get(unknown)
    return f". Set {moved} instead." if moved else did_you_mean(unknown, _FIELDS)


def _quoted(name: str) -> str:
    """Return the name as a TOML string, which JSON strings are too."""
    return msgspec.json.encode(name).decode()


def _are_distinct(values: Sequence[str]) -> bool:
    return len(set(values)) == len(values)


def _is_json(value: dict[str, Any]) -> bool:
    """Return whether JSON can represent the value: TOML also has dates, infinities and NaN."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value)) == value
    except (OverflowError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
