"""Build the request that a backend receives from the caller's request.

Engines cache prompt prefixes by salt and route sessions by key. Both hints are hashed with a secret
and the caller's project, so that one project can neither name nor detect what another has cached.
"""

import hashlib
import hmac

from msgspec import Struct

from tollhouse.backends.openai_json import Forwarding
from tollhouse.backends.types import UpstreamRequest
from tollhouse.contract.bounds import OUTPUT_TOKENS_MAX
from tollhouse.inference.calls import InferenceCall
from tollhouse.inference.prepared_request import Candidate
from tollhouse.keys.types import Customer
from tollhouse.ledger import bounds

TENANTS_KEPT_MAX = 10_000
_PURPOSE = b"tollhouse tenancy v1"


class _Tenant(Struct, frozen=True, kw_only=True):
    """The key under which the hints of one project are hashed, and the salt of no salt."""

    key: bytes
    salt: str


class UpstreamRequestBuilder:
    """Encodes requests for backends. One per worker, because it keeps the worker's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, "sha256")
        self._tenants: dict[Customer, _Tenant] = {}

    def build(
        self, candidate: Candidate, customer: Customer, call: InferenceCall
    ) -> UpstreamRequest:
        """Return the encoded request, with hashed hints where the backend accepts them."""
        tenant = self._tenants.get(customer)
        if tenant is None:
            if len(self._tenants) >= TENANTS_KEPT_MAX:
                self._tenants.clear()
            tenant = self._tenants[customer] = self._tenant(customer)
        request, resolved = candidate.request, candidate.resolved
        hint = call.session or request.prompt_cache_key
        context = call.trace.context
        return UpstreamRequest(
            path=resolved.path,
            body=resolved.encode(request, _forwarding(candidate, tenant)),
            model=resolved.upstream_model,
            first_event_seconds=resolved.first_event_seconds,
            answer_seconds=resolved.model.answer_seconds,
            context_tokens=resolved.model.context_length,
            output_tokens=candidate.bound.output_tokens,
            affinity=_hashed(tenant.key, hint, b"affinity") if hint else None,
            traceparent=None if context is None else context.traceparent,
        )

    def _tenant(self, customer: Customer) -> _Tenant:
        message = customer.organization_id.bytes + customer.project_id.bytes
        key = hashlib.blake2b(message, key=self._secret, digest_size=32).digest()
        return _Tenant(key=key, salt=_hashed_hint(key, ""))


def _hashed_hint(tenant_key: bytes, hint: str) -> str:
    """Return a hint that is stable for one project and unknown to every other; 64 characters."""
    return _hashed(tenant_key, hint, b"hint").hex()


def _hashed(tenant_key: bytes, hint: str, purpose: bytes) -> bytes:
    return hashlib.blake2b(hint.encode(), key=tenant_key, person=purpose, digest_size=32).digest()


def _forwarding(candidate: Candidate, tenant: _Tenant) -> Forwarding:
    request, resolved = candidate.request, candidate.resolved
    takes = resolved.backend.takes
    requested = request.max_completion_tokens or request.max_tokens
    output_tokens = bounds.output_tokens_max(requested or None, resolved.bounds)
    cache_key, cache_salt = request.prompt_cache_key, None
    if "cache_salt" in takes:
        salt = request.cache_salt
        cache_salt = _hashed_hint(tenant.key, salt) if salt else tenant.salt
    return Forwarding(
        upstream_model=resolved.upstream_model,
        reasons="reasoning" in resolved.model.features,
        output_tokens=output_tokens,
        reasoning_tokens_max=(
            OUTPUT_TOKENS_MAX if resolved.bounds.reasons_outside_bound else output_tokens - 1
        ),
        takes_budget="reasoning_budget" in resolved.model.features,
        takes_completion_bound="max_completion_tokens" in takes,
        takes_continuous_usage="continuous_usage_stats" in takes,
        takes_timings="timings_per_token" in takes,
        cache_salt=cache_salt,
        prompt_cache_key=(
            _hashed_hint(tenant.key, cache_key)
            if cache_key and "prompt_cache_key" in takes
            else None
        ),
        effort_names=resolved.model.effort_names,
        writes_cache=resolved.model.pricing.input_cache_write is not None,
        hints=candidate.hints,
    )
