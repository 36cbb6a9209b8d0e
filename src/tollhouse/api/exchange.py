"""One HTTP request on its way through the edge."""

from msgspec import Struct

from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.body import Body, Receive, Scope, Send
from tollhouse.api.head import Head
from tollhouse.contract.errors import ErrorShape
from tollhouse.inference.trace import RequestTrace
from tollhouse.limits.limiter import UNCOUNTED, Permit


class Exchange(Struct):
    """A request and what the edge has learned about it so far."""

    scope: Scope
    receive: Receive
    send: Send
    head: Head
    body: Body
    trace: RequestTrace
    shape: ErrorShape = ErrorShape.OPENAI
    permit: Permit = UNCOUNTED
    admin_permit: AdminPermit | None = None
    session: str | None = None
    has_caller_left: bool = False
