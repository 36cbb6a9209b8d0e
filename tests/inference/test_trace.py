"""What the log line of a request says of its inference."""

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from tollhouse.base.ids import RequestId
from tollhouse.inference.errors import AnswerExpired
from tollhouse.inference.trace import Trace
from tollhouse.observability.context import RequestContext

REQUEST_ID = RequestId(UUID(int=1))


def test_the_log_line_has_the_code_of_a_failure_in_the_stream() -> None:
    trace = Trace(
        request_id=REQUEST_ID,
        customer=cast("Any", None),
        operation="chat",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        started_seconds=0.0,
        record=lambda _: None,
        failure=AnswerExpired(),
    )
    context = RequestContext(request_id=REQUEST_ID, method="POST")

    trace.fill(context)

    assert context.error_code == AnswerExpired.code
