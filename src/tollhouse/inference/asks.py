"""What a backend is asked: the caller's request in the words of the backend, and of nobody else."""

from tollhouse.backends.encoding import Forwarding, encode
from tollhouse.backends.types import Ask
from tollhouse.contract.bounds import OUTPUT_TOKENS_MAX
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.offers import Offer
from tollhouse.inference.tenancy import Tenancy, Tenant
from tollhouse.keys.types import Customer
from tollhouse.ledger import bounds

CHAT_PATH = "/chat/completions"


class Asks:
    """One per worker."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy

    def of(
        self, request: ChatRequest, offer: Offer, customer: Customer, *, session: str | None
    ) -> Ask:
        """Hints of the customer leave sealed, and only where the backend takes them."""
        tenant = self._tenancy.of(customer.organization_id, customer.project_id)
        return Ask(
            path=CHAT_PATH,
            body=encode(request, _forwarding(request, offer, tenant)),
            affinity=tenant.affinity(session or request.prompt_cache_key or None),
        )


def _forwarding(request: ChatRequest, offer: Offer, tenant: Tenant) -> Forwarding:
    takes = offer.backend.takes
    requested = request.max_completion_tokens or request.max_tokens
    output_tokens = bounds.output_tokens_max(requested or None, offer.bounds)
    cache_key = request.prompt_cache_key
    return Forwarding(
        upstream_model=offer.upstream_model,
        reasons="reasoning" in offer.model.features,
        output_tokens=output_tokens,
        reasoning_tokens_max=(
            OUTPUT_TOKENS_MAX if offer.bounds.reasons_outside_bound else output_tokens - 1
        ),
        takes_continuous_usage="continuous_usage_stats" in takes,
        cache_salt=tenant.sealed(request.cache_salt or "") if "cache_salt" in takes else None,
        prompt_cache_key=(
            tenant.sealed(cache_key) if cache_key and "prompt_cache_key" in takes else None
        ),
        effort_names=offer.model.effort_names,
    )
