"""Lines of the log: one JSON object each, only listed fields, never a key."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tollhouse.base.ids import OrganizationId, ProjectKeyId, RequestId
from tollhouse.observability import log
from tollhouse.observability.log import RequestLine

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "Z9" * 24 + "q"
REQUEST_ID = RequestId(UUID("01890000-0000-7000-8000-000000000001"))
LINE = RequestLine(timestamp=NOW, request_id=REQUEST_ID, method="GET", status=404, duration_ms=0.5)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def configured(capsys: Capture) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = root.handlers, root.level, sys.excepthook
    log.configure("INFO")
    yield
    root.handlers, sys.excepthook = handlers, hook
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def _lines(capsys: Capture) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_holds_time_level_logger_and_event_first(capsys: Capture) -> None:
    logging.getLogger("tollhouse.some").warning("it_happened", extra={"task": "sweep"})

    (line,) = _lines(capsys)
    assert list(line) == ["timestamp", "level", "logger", "event", "task"]
    assert datetime.fromisoformat(line["timestamp"]).utcoffset() is not None
    assert line["level"] == "warning"
    assert line["logger"] == "tollhouse.some"
    assert line["event"] == "it_happened"


def test_a_field_that_is_not_on_the_list_is_dropped(capsys: Capture) -> None:
    logging.getLogger("x").error("e", extra={"body": "secret", "headers": ["secret"], "count": 3})

    (line,) = _lines(capsys)
    assert line["count"] == 3
    assert "secret" not in json.dumps(line)


@pytest.mark.parametrize("prefix", ["thp_", "tha_"])
@pytest.mark.parametrize(
    "text",
    ["{key}", "Bearer {key}", "a\n{key}", "{key}tail", '"{key}"', "caf\u00e9 {key}"],
)
def test_a_key_is_cut_out_wherever_it_stands(capsys: Capture, prefix: str, text: str) -> None:
    logging.getLogger("x").error("%s", text.format(key=prefix + SECRET))

    (line,) = _lines(capsys)
    assert SECRET[:12] not in line["event"]
    assert f"{prefix}[redacted]" in line["event"]


def test_a_line_that_is_not_unicode_is_written_all_the_same() -> None:
    """By hand, since the test runner itself cannot report such a line."""
    record = logging.makeLogRecord({"msg": f"\udc80 thp_{SECRET}", "count": 3})

    line = json.loads(log.JsonFormatter().format(record))

    assert line["event"] == r"\udc80 thp_[redacted]"
    assert line["count"] == 3


def test_a_key_in_an_exception_is_cut_out(capsys: Capture) -> None:
    failure = ValueError(f"no such key: thp_{SECRET}")

    logging.getLogger("x").error("failed", exc_info=failure)

    (line,) = _lines(capsys)
    assert "ValueError: no such key: thp_[redacted]" in line["exception"]
    assert SECRET not in json.dumps(line)


def test_an_exception_is_one_string_of_bounded_length(capsys: Capture) -> None:
    failure = ValueError("x" * 100_000)

    logging.getLogger("x").error("failed", exc_info=failure)

    (line,) = _lines(capsys)
    assert len(line["exception"]) == log.EXCEPTION_LENGTH_MAX


def test_what_looks_like_a_word_is_left_alone(capsys: Capture) -> None:
    logging.getLogger("x").error("thp_short and tha_ and the_usual_words_of_a_message")

    (line,) = _lines(capsys)
    assert line["event"] == "thp_short and tha_ and the_usual_words_of_a_message"


def test_an_uncaught_failure_is_a_line_as_well(capsys: Capture) -> None:
    failure = RuntimeError(f"tha_{SECRET}")

    sys.excepthook(RuntimeError, failure, None)

    (line,) = _lines(capsys)
    assert line["event"] == "process_failed"
    assert line["level"] == "critical"
    assert "tha_[redacted]" in line["exception"]


def test_the_line_of_a_request_is_exactly_this(capsys: Capture) -> None:
    line = RequestLine(
        timestamp=NOW,
        request_id=REQUEST_ID,
        method="POST",
        status=400,
        duration_ms=1.235,
        operation="createChatCompletion",
        organization_id=OrganizationId(UUID(int=1)),
        key_id=ProjectKeyId(UUID(int=2)),
        code="invalid_json",
        client_request_id="mine",
        retry_count=1,
    )

    log.request_line(line)

    assert _lines(capsys) == [
        {
            "timestamp": "2026-01-02T03:04:05Z",
            "level": "info",
            "logger": "tollhouse.requests",
            "event": "request",
            "request_id": str(REQUEST_ID),
            "method": "POST",
            "operation": "createChatCompletion",
            "status": 400,
            "code": "invalid_json",
            "duration_ms": 1.235,
            "organization_id": "00000000-0000-0000-0000-000000000001",
            "key_id": "00000000-0000-0000-0000-000000000002",
            "client_request_id": "mine",
            "retry_count": 1,
        }
    ]


def test_a_request_that_is_not_known_further_leaves_the_rest_out(capsys: Capture) -> None:
    log.request_line(LINE)

    (line,) = _lines(capsys)
    assert line.keys() == {
        *("timestamp", "level", "logger", "event"),
        *("request_id", "method", "status", "duration_ms"),
    }


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("a" * 500, "a" * 128),
        ("a\r\nb\x00\x7f\u20ac", "a??b???"),
        ("x" * 100 + "thp_" + SECRET, "x" * 100 + "thp_[redacted]"),
        ("x" * 110 + "thp_" + SECRET, "x" * 110 + "thp_[redacted]"),
    ],
)
def test_a_text_of_the_callers_is_bounded(sent: str, written: str) -> None:
    assert log.bounded_text(sent) == written


def test_lines_of_requests_can_be_switched_off() -> None:
    assert log.are_requests_logged()

    log.configure("WARNING")

    assert not log.are_requests_logged()


def test_the_server_does_not_announce_itself(capsys: Capture) -> None:
    logging.getLogger("uvicorn.error").info("Started server process [%d]", 1)
    logging.getLogger("uvicorn.error").error("Exception in ASGI application")

    assert [line["event"] for line in _lines(capsys)] == ["Exception in ASGI application"]


def test_a_log_that_nobody_reads_ends_no_request() -> None:
    closed = io.StringIO()
    closed.close()

    with contextlib.redirect_stderr(closed):
        with pytest.raises(ValueError, match="closed"):
            sys.stderr.write("x")
        logging.getLogger("x").error("e")
        log.request_line(LINE)


def test_a_record_whose_arguments_do_not_fit_is_reported_not_raised(capsys: Capture) -> None:
    """By hand, since the test runner's own handler raises here."""
    record = logging.makeLogRecord({"msg": "%d workers", "args": ("two",)})
    handler = log.StandardErrorHandler()
    handler.setFormatter(log.JsonFormatter())

    handler.emit(record)

    assert "--- Logging error ---" in capsys.readouterr().err
