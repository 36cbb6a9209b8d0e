"""What the headers of a customer's request say beside the key."""

from tollhouse.api.head import Head, decoded
from tollhouse.contract.bounds import SESSION_ID_LENGTH_MAX
from tollhouse.contract.parameters import SESSION_HEADERS
from tollhouse.inference.errors import SessionInvalid
from tollhouse.keys.types import Customer
from tollhouse.limits.types import Entrant
from tollhouse.observability.context import RequestContext


def session_of(head: Head) -> str | None:
    """Return the caller's hint which requests belong together: the first header that is sent.

    Raises `SessionInvalid` if either header is empty, too long or sent twice.
    """
    hint: str | None = None
    for name in SESSION_HEADERS:
        values = head.values(name.lower().encode())
        if not values:
            continue
        text = decoded(values[0])
        if len(values) > 1 or not 1 <= len(text) <= SESSION_ID_LENGTH_MAX:
            raise SessionInvalid(name, length_max=SESSION_ID_LENGTH_MAX)
        hint = hint or text
    return hint


def entrant(customer: Customer, context: RequestContext) -> Entrant:
    """Whose traffic this request is."""
    return Entrant(
        organization_id=customer.organization_id,
        project_id=customer.project_id,
        api_key_id=customer.key_id,
        limits=customer.limits,
        request_id=context.request_id,
    )
