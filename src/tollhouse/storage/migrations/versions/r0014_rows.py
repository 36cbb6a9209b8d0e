"""Holds, resolutions and records of requests as rows instead of arrays of columns.

Single holds are decided without sets, and those of many organizations as one set. The functions of
earlier revisions stay for workers of the version before.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_admission, ledger_resolution

revision = "0014"
down_revision = "0013"

_REQUEST_RECORD: Final = """
CREATE TYPE request_record AS (
    organization_id     uuid,
    day                 date,
    request_id          uuid,
    project_id          uuid,
    api_key_id          uuid,
    operation           text,
    started_at          timestamptz,
    status              smallint,
    error_code          text,
    failed_by           text,
    model               text,
    backend             text,
    replica             text,
    is_stream           boolean,
    input_tokens        bigint,
    cached_input_tokens bigint,
    output_tokens       bigint,
    cost_pico           bigint,
    queue_ms            real,
    admission_ms        real,
    judging_ms          real,
    first_byte_ms       real,
    total_ms            real,
    is_estimated        boolean)
"""

STATEMENTS: Final = (
    _REQUEST_RECORD,
    *ledger_admission.FUNCTIONS,
    *ledger_resolution.FUNCTIONS,
)
