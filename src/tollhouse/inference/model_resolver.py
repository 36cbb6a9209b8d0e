"""Find the model of a request, with its backend, prices and bounds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tollhouse.backends.messages_json import encode_messages
from tollhouse.backends.openai_json import Forwarding, encode
from tollhouse.backends.port import BackendPort
from tollhouse.base.dialects import chat_path
from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import Quota
from tollhouse.base.rates import OrganizationRate, retry_after_seconds
from tollhouse.catalog import service
from tollhouse.catalog.errors import ModelLocked, ModelNotFound, ModelNotReady
from tollhouse.catalog.types import Backend, Catalog, Model
from tollhouse.contract.bounds import OUTPUT_TOKENS_DEFAULT
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.errors import CountedBytesLimited
from tollhouse.keys.types import Customer
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily
from tollhouse.ledger.pricing import Prices, parse_price
from tollhouse.observability import bound_metrics, model_metrics

DECISIONS_KEPT_MAX = 10_000
"""Customers and models for which it is kept that the customer may use the model."""
FIRST_EVENT_SECONDS_BESIDE_FALLBACKS = 8.0
"""How long a stream may have no event where a fallback can answer, unless the catalog says or the
model reasons."""
_FAMILIES = {
    "bytes": TokenizerFamily.BYTES,
    "nfc": TokenizerFamily.NFC,
    "nfkc": TokenizerFamily.NFKC,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedModel:
    """A model with its backend, prices and bounds. `price_revision` identifies the prices."""

    id: str
    model: Model
    backend: Backend
    port: BackendPort
    prices: Prices
    price_revision: int
    bounds: ModelBounds

    upstream_model: str
    """The name of the model at its backend."""
    path: str
    """The path of a chat, which continues the URL of a replica."""
    longest_call: timedelta
    first_event_seconds: float | None
    """How long a stream may have no event, or None for the backend's own time."""
    encode: Callable[[ChatRequest, Forwarding], bytes]
    """Encodes requests in the dialect of the backend."""

    @property
    def is_ready(self) -> bool:
        """Whether a call would find a replica now that is not ejected."""
        return self.port.is_ready(self.upstream_model)


class ModelResolver:
    """Finds models that a customer may use and whose backend is ready. One per worker.

    Counting tokens is free: `counted_bytes` bounds it for each organization.
    """

    def __init__(
        self,
        catalog: Catalog,
        ports: Mapping[str, BackendPort],
        *,
        price_revision: int,
        counted_bytes: OrganizationRate,
    ) -> None:
        self._catalog = catalog
        self._ports = ports
        self._unlocked: dict[tuple[Customer, str], tuple[ResolvedModel, ...]] = {}
        self._counted_bytes = counted_bytes
        self._models = {
            model_id: _resolved(
                model_id,
                model,
                backend=catalog.backends[model.backend],
                port=ports[model.backend],
                price_revision=price_revision,
            )
            for model_id, model in catalog.models.items()
        }

    def find(self, name: str, customer: Customer) -> ResolvedModel:
        """Return the model with this ID or alias, without its fallbacks.

        Raises if the customer may not use it, or if its backend is not ready.
        """
        resolved = self._usable(name, customer)[0]
        if not resolved.port.is_healthy:
            raise ModelNotReady
        return resolved

    def candidates(self, name: str, customer: Customer) -> Sequence[ResolvedModel]:
        """Return the models that may answer, in order: the named one and its fallbacks.

        Those that the customer may not use are left out, and those that health checks keep calls
        off. Those that are ejected come last. Raises if the customer may not use the named one, or
        if none is left.
        """
        usable = self._usable(name, customer)
        if len(usable) == 1 and usable[0].is_ready:
            return usable
        found = [resolved for resolved in usable if resolved.port.is_healthy]
        if not found:
            raise ModelNotReady
        return sorted(found, key=_is_ejected)

    def id_of(self, name: str) -> str:
        """Return the ID of the model that a request names by its ID or an alias."""
        return self._catalog.aliases.get(name, name)

    def _usable(self, name: str, customer: Customer) -> tuple[ResolvedModel, ...]:
        usable = self._unlocked.get((customer, name))
        if usable is None:
            if len(self._unlocked) >= DECISIONS_KEPT_MAX:
                self._unlocked.clear()
            usable = self._unlocked[customer, name] = self._unlocked_models(name, customer)
        return usable

    def _unlocked_models(self, name: str, customer: Customer) -> tuple[ResolvedModel, ...]:
        """Return the named model and those of its fallbacks that the customer may use.

        This is decided once: a key that changes becomes another customer.
        """
        model_id = self.id_of(name)
        model = self._require(model_id, customer, named=name)
        found = [self._models[model_id]]
        for fallback in model.fallbacks:
            try:
                self._require(fallback, customer)
            except (ModelNotFound, ModelLocked):
                continue
            found.append(self._models[fallback])
        return tuple(found)

    def _require(self, model_id: str, customer: Customer, *, named: str | None = None) -> Model:
        model = service.find(
            self._catalog, model_id, allowed_models=customer.allowed_models, named=named
        )
        service.require_unlocked(model, granted_checks=customer.granted_checks)
        return model

    def take_counted_bytes(self, organization_id: OrganizationId, size_bytes: int) -> None:
        """Take bytes from the free counting quota, or raise `CountedBytesLimited`."""
        wait_us = self._counted_bytes.acquire(organization_id, size_bytes)
        if wait_us:
            bound_metrics.quota_refused(Quota.COUNTED_BYTES)
            raise CountedBytesLimited(
                bytes_per_minute=self._counted_bytes.per_minute,
                retry_after_seconds=retry_after_seconds(wait_us),
            )

    def may_count(self, organization_id: OrganizationId, size_bytes: int) -> bool:
        """Take bytes from the free counting quota; return False if it is used up."""
        return not self._counted_bytes.acquire(organization_id, size_bytes)

    def is_model_ready(self, model_id: str) -> bool:
        """Return whether a call for a model would find a replica now."""
        return self._models[model_id].is_ready

    def show_candidates(self) -> None:
        """Show for each model how many could answer for it now, itself and its fallbacks."""
        in_use = {
            each.id for each in self._models.values() if each.port.is_in_use(each.upstream_model)
        }
        for resolved in self._models.values():
            found = in_use.intersection((resolved.id, *resolved.model.fallbacks))
            model_metrics.candidates(resolved.id, len(found))

    def is_backend_ready(self, name: str) -> bool:
        """Return whether a replica is healthy, and is not ejected for all models of the backend."""
        own = [each for each in self._models.values() if each.model.backend == name]
        return self._ports[name].is_healthy and (not own or any(each.is_ready for each in own))


def price_list(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return the prices of every model, as the ledger stores them in a revision."""
    return {
        model_id: {
            "prompt": model.pricing.prompt,
            "completion": model.pricing.completion,
            "image": model.pricing.image,
            "request": model.pricing.request,
            "input_cache_read": model.pricing.input_cache_read or model.pricing.prompt,
            "reasoning": model.pricing.reasoning or model.pricing.completion,
            # Left out where it has no price of its own: lists without it stay one revision.
            **(
                {"input_cache_write": written}
                if (written := model.pricing.input_cache_write)
                else {}
            ),
        }
        for model_id, model in catalog.models.items()
    }


def _resolved(
    model_id: str, model: Model, *, backend: Backend, port: BackendPort, price_revision: int
) -> ResolvedModel:
    upstream_model = model.upstream_model or model_id
    return ResolvedModel(
        id=model_id,
        model=model,
        backend=backend,
        port=port,
        prices=_prices(model),
        price_revision=price_revision,
        bounds=bounds_of(model, backend),
        upstream_model=upstream_model,
        path=chat_path(backend.dialect, upstream_model, api_version=backend.api_version),
        longest_call=timedelta(seconds=backend.total_seconds),
        first_event_seconds=_first_event_seconds(model, backend),
        encode=encode_messages if backend.dialect == "anthropic" else encode,
    )


def _is_ejected(resolved: ResolvedModel) -> bool:
    return not resolved.is_ready


def _first_event_seconds(model: Model, backend: Backend) -> float | None:
    if model.first_event_seconds is not None or backend.first_event_seconds is not None:
        return model.first_event_seconds
    # A model that reasons may be silent for long by right.
    is_quick = model.fallbacks and "reasoning" not in model.features
    return FIRST_EVENT_SECONDS_BESIDE_FALLBACKS if is_quick else None


def _prices(model: Model) -> Prices:
    pricing = model.pricing
    written = pricing.input_cache_write
    return Prices(
        prompt_token_pico_usd=parse_price(pricing.prompt),
        cache_write_token_pico_usd=None if written is None else parse_price(written),
        cached_input_token_pico_usd=parse_price(pricing.input_cache_read or pricing.prompt),
        completion_token_pico_usd=parse_price(pricing.completion),
        reasoning_token_pico_usd=parse_price(pricing.reasoning or pricing.completion),
        image_pico_usd=parse_price(pricing.image),
        request_pico_usd=parse_price(pricing.request),
    )


def bounds_of(model: Model, backend: Backend) -> ModelBounds:
    """Return the bounds of the tokens that the backend can bill for the model."""
    return ModelBounds(
        tokenizer=None if model.tokenizer is None else _FAMILIES[model.tokenizer],
        context_length=model.context_length,
        max_output_length=model.max_output_length,
        default_output_tokens=model.default_output_tokens or OUTPUT_TOKENS_DEFAULT,
        template_tokens=model.template_tokens,
        image_tokens=model.image_tokens,
        reasons_outside_bound=backend.reasons_outside_bound,
        bills_prompt_per_choice=backend.bills_prompt_per_choice,
    )
