"""One HTTP request on its way through the edge."""

from dataclasses import dataclass
from datetime import datetime

from tollhouse.api.admin_permits import AdminPermit
from tollhouse.api.body import Body, Receive, Scope, Send
from tollhouse.api.head import Head
from tollhouse.contract.errors import ErrorShape
from tollhouse.inference.trace import Trace
from tollhouse.limits.limiter import UNCOUNTED, Permit
from tollhouse.observability.context import RequestContext


@dataclass(slots=True)
class Exchange:
    """A request and what the edge has learned about it so far."""

    scope: Scope
    receive: Receive
    send: Send
    head: Head
    body: Body
    context: RequestContext
    now: datetime
    started_seconds: float
    shape: ErrorShape = ErrorShape.OPENAI
    permit: Permit = UNCOUNTED
    admin_permit: AdminPermit | None = None
    trace: Trace | None = None
    session: str | None = None
    has_caller_left: bool = False
