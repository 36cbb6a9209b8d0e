"""Conversion of database rows into records and counts."""

from typing import Final

import msgspec

from tollhouse.activity.types import FailureSource, HourlyCount, RequestRecord
from tollhouse.base.attempts import Attempt
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Row

TOOL_SEPARATOR: Final = ", "
_DECIMALS: Final = 3
"""Times are stored in single precision, which is not exact below a microsecond."""


def record(row: Row) -> RequestRecord:
    """Convert a row of `requests`."""
    return RequestRecord(
        organization_id=OrganizationId(row["organization_id"]),
        request_id=RequestId(row["request_id"]),
        project_id=ProjectId(row["project_id"]),
        api_key_id=ProjectKeyId(row["api_key_id"]),
        operation=row["operation"],
        started_at=row["started_at"],
        status=row["status"],
        error_code=row["error_code"],
        error_param=row["error_param"],
        failed_by=None if row["failed_by"] is None else FailureSource(row["failed_by"]),
        model=row["model"],
        backend=row["backend"],
        replica=row["replica"],
        is_stream=row["is_stream"],
        input_tokens=row["input_tokens"],
        cached_input_tokens=row["cached_input_tokens"],
        output_tokens=row["output_tokens"],
        is_estimated=row["is_estimated"],
        cost_pico_usd=None if row["cost_pico"] is None else PicoUsd(row["cost_pico"]),
        queue_ms=_milliseconds(row["queue_ms"]),
        admission_ms=_milliseconds(row["admission_ms"]),
        judging_ms=_milliseconds(row["judging_ms"]),
        first_byte_ms=_milliseconds(row["first_byte_ms"]),
        total_ms=round(row["total_ms"], _DECIMALS),
        requested_model=row["requested_model"],
        dropped_tools=_listed(row["dropped_tools"]),
        attempts=_attempts(row["attempts"]),
        label=row["label"],
    )


def counted(row: Row) -> HourlyCount:
    """Convert a row that counts the requests of one hour, group and outcome."""
    return HourlyCount(
        hour=unix_seconds(row["hour"]),
        group=row["grouped"],
        status=row["status"],
        error_code=row["error_code"] or None,
        requests=row["requests"],
        input_tokens=int(row["input_tokens"]),
        cached_input_tokens=int(row["cached_input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        total_ms=row["total_ms"],
        latency_counts=tuple(row["latency_counts"]),
    )


def _listed(stored: str | None) -> tuple[str, ...]:
    return tuple(stored.split(TOOL_SEPARATOR)) if stored else ()


def _attempts(stored: str | None) -> tuple[Attempt, ...]:
    return msgspec.json.decode(stored, type=tuple[Attempt, ...]) if stored else ()


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
