"""Build the request that a backend receives from the caller's request.

Engines cache prompt prefixes by salt and route sessions by key. Both hints are hashed with a secret
and the caller's project, so that one project can neither name nor detect what another has cached.
"""

import hashlib
import hmac

from tollhouse.backends.openai_json import Forwarding, encode
from tollhouse.backends.types import UpstreamRequest
from tollhouse.base.ids import OrganizationId, ProjectId
from tollhouse.contract.bounds import OUTPUT_TOKENS_MAX
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.model_resolver import ResolvedModel
from tollhouse.keys.types import Customer
from tollhouse.ledger import bounds

CHAT_PATH = "/chat/completions"
_PURPOSE = b"tollhouse tenancy v1"


class UpstreamRequestBuilder:
    """Encodes requests for backends. One per worker, because it keeps the worker's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, "sha256")

    def build(
        self,
        request: ChatRequest,
        resolved: ResolvedModel,
        customer: Customer,
        *,
        session: str | None,
    ) -> UpstreamRequest:
        """Return the encoded request, with hashed hints where the backend accepts them."""
        key = self.tenant_key(customer.organization_id, customer.project_id)
        hint = session or request.prompt_cache_key
        return UpstreamRequest(
            path=CHAT_PATH,
            body=encode(request, _forwarding(request, resolved, key)),
            affinity=_hashed(key, hint, b"affinity") if hint else None,
        )

    def tenant_key(self, organization_id: OrganizationId, project_id: ProjectId) -> bytes:
        """Return the key under which the hints of one project are hashed."""
        message = organization_id.bytes + project_id.bytes
        return hashlib.blake2b(message, key=self._secret, digest_size=32).digest()


def hashed_hint(tenant_key: bytes, hint: str) -> str:
    """Return a hint that is stable for one project and unknown to every other; 64 characters."""
    return _hashed(tenant_key, hint, b"hint").hex()


def _hashed(tenant_key: bytes, hint: str, purpose: bytes) -> bytes:
    return hashlib.blake2b(hint.encode(), key=tenant_key, person=purpose, digest_size=32).digest()


def _forwarding(request: ChatRequest, resolved: ResolvedModel, tenant_key: bytes) -> Forwarding:
    takes = resolved.backend.takes
    requested = request.max_completion_tokens or request.max_tokens
    output_tokens = bounds.output_tokens_max(requested or None, resolved.bounds)
    cache_key = request.prompt_cache_key
    return Forwarding(
        upstream_model=resolved.upstream_model,
        reasons="reasoning" in resolved.model.features,
        output_tokens=output_tokens,
        reasoning_tokens_max=(
            OUTPUT_TOKENS_MAX if resolved.bounds.reasons_outside_bound else output_tokens - 1
        ),
        takes_continuous_usage="continuous_usage_stats" in takes,
        cache_salt=(
            hashed_hint(tenant_key, request.cache_salt or "") if "cache_salt" in takes else None
        ),
        prompt_cache_key=(
            hashed_hint(tenant_key, cache_key)
            if cache_key and "prompt_cache_key" in takes
            else None
        ),
        effort_names=resolved.model.effort_names,
    )
