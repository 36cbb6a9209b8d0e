"""Logging: one JSON object per line on standard error.

Callers name an event and pass facts as `extra`. Only the fields of `FIELDS` are written, so that no
body and no header is logged by accident. Anything that looks like a key is removed from the line.
"""

import contextlib
import logging
import re
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd

FIELDS: Final = (
    "request_id",
    "method",
    "operation",
    "status",
    "code",
    "duration_ms",
    "organization_id",
    "key_id",
    "client_request_id",
    "retry_count",
    "task",
    "job",
    "outcome",
    "reason",
    "worker",
    "workers",
    "exit_code",
    "delay_seconds",
    "count",
    "number",
    "sha256",
    "scope",
    "scope_id",
    "period",
    "window",
    "reservation_id",
    "amount_pico_usd",
    "day",
    "backend",
    "replica",
    "model",
    "host",
    "table",
    "check",
    "remedy",
    "subject",
    "expected",
    "found",
    "delivery_id",
)
CALLERS_TEXT_LENGTH_MAX = 128
EXCEPTION_LENGTH_MAX = 16_384
MILLISECOND_DECIMALS = 3

# A key has 49 characters after its prefix, which may name a cell. Shorter runs match as well, since
# a truncated key is still most of a secret.
_KEY = re.compile(r"(th[pas]_(?:[a-z][a-z0-9]{0,15}_)?)[0-9A-Za-z_-]{12,}")
_UNPRINTABLE = re.compile(r"[^ -~]")

_REQUEST_LINE_HEAD = '{"level":"info","logger":"tollhouse.requests","event":"request",'

_requests = logging.getLogger("tollhouse.requests")
_process = logging.getLogger("tollhouse.process")
_encode_line = msgspec.json.Encoder().encode


def configure(level: str) -> None:
    """Format all logs of the process as JSON, also uncaught exceptions."""
    handler = StandardErrorHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # The supervisor logs each start and stop as an event, so uvicorn's own messages are dropped.
    logging.getLogger("uvicorn").setLevel("WARNING")
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught


class RequestLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log line of a request. Fields without a value are left out.

    It has no raw path, which may contain anything. A text of the caller's has to pass
    `bounded_text`, and a time `rounded_ms`.
    """

    timestamp: datetime
    request_id: RequestId
    method: str
    status: int
    duration_ms: float
    operation: str | None = None
    code: str | None = None
    organization_id: OrganizationId | None = None
    key_id: ProjectKeyId | AdminKeyId | None = None
    client_request_id: str | None = None
    retry_count: int | None = None
    model: str | None = None
    backend: str | None = None
    replica: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_pico_usd: PicoUsd | None = None
    queue_ms: float | None = None
    admission_ms: float | None = None
    judging_ms: float | None = None
    first_byte_ms: float | None = None
    trace_id: str | None = None
    span_id: str | None = None


def are_requests_logged() -> bool:
    """Return whether requests have log lines at the configured level."""
    return _requests.isEnabledFor(logging.INFO)


def request_line(line: RequestLine) -> None:
    """Write the log line of a request.

    It does not use a log record, which would cost five times as much as the rest.
    """
    _write(_REQUEST_LINE_HEAD + _encode_line(line)[1:].decode())


class StandardErrorHandler(logging.Handler):
    """Writes whole lines to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. Reports a record whose arguments do not fit its message."""
        try:
            line = self.format(record)
        except (TypeError, ValueError):
            self.handleError(record)
        else:
            _write(line)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, with keys redacted."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, level, logger and event, then the fields that have a value."""
        line: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        facts = record.__dict__
        for name in FIELDS:
            if (value := facts.get(name)) is not None:
                line[name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-EXCEPTION_LENGTH_MAX:]
        return redact(_encode(line))


def redact(text: str) -> str:
    """Replace everything that looks like a Tollhouse key, but keep its prefix."""
    return _KEY.sub(r"\1[redacted]", text)


def _write(line: str) -> None:
    """Write a line, or drop it if that fails: a full disk must not stop the process."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")


def _encode(line: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=str).decode()
    except UnicodeEncodeError:
        # Lone surrogates, for example from a file name that is not UTF-8.
        whole = {name: _escaped(value) for name, value in line.items()}
        return msgspec.json.encode(whole, enc_hook=str).decode()


def _escaped(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value


def rounded_ms(milliseconds: float | None) -> float | None:
    """Return a time with as many decimals as a log line has."""
    return None if milliseconds is None else round(milliseconds, MILLISECOND_DECIMALS)


def bounded_text(text: str | None) -> str | None:
    """Return a caller's text, redacted and then truncated: truncated keys are harder to find."""
    if not text:
        return None
    if not (text.isascii() and text.isprintable()):
        text = _UNPRINTABLE.sub("?", text)
    return redact(text)[:CALLERS_TEXT_LENGTH_MAX]


def _log_uncaught(
    kind: type[BaseException], failure: BaseException, traceback: TracebackType | None
) -> None:
    _process.critical("process_failed", exc_info=(kind, failure, traceback))
