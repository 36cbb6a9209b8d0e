"""Input that was written to a cache, as a part of the input that has its own line item.

`input_tokens` and `input_pico` still have all input that was not read from a cache. So a worker of
the previous release, which does not know the new columns, counts what it settles as before.
"""

from typing import Final

from tollhouse.storage.migrations.ledger_short_windows import SETTLE_ANSWERED
from tollhouse.storage.migrations.ledger_windows import changed

revision = "0027"
down_revision = "0026"

_ADD_TO_SUMS: Final = """
      ADD COLUMN cache_write_tokens numeric(38,0) NOT NULL DEFAULT 0,
      ADD COLUMN cache_write_pico numeric(38,0) NOT NULL DEFAULT 0
"""
_INTO_ROLLUP: Final = "image_pico, request_pico)\n        SELECT r.organization_id, "
_INTO_ROLLUP_WITH_WRITES: Final = (
    "image_pico, request_pico,\n            cache_write_tokens, cache_write_pico)\n"
    "        SELECT r.organization_id, "
)
_SUM: Final = "sum(r.request_pico)\n"
_SUM_WITH_WRITES: Final = (
    "sum(r.request_pico), sum(r.cache_write_tokens),\n               sum(r.cache_write_pico)\n"
)
_ADD: Final = "request_pico = t.request_pico + EXCLUDED.request_pico\n"
_ADD_WITH_WRITES: Final = (
    "request_pico = t.request_pico + EXCLUDED.request_pico,\n"
    "            cache_write_tokens = t.cache_write_tokens + EXCLUDED.cache_write_tokens,\n"
    "            cache_write_pico = t.cache_write_pico + EXCLUDED.cache_write_pico\n"
)


def _in_both_rollups(function: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert function.count(before) == 2, f"the sums of days and hours: {before}"  # noqa: PLR2004
        function = function.replace(before, after)
    return function


_SETTLE_WRITTEN: Final = _in_both_rollups(
    changed(
        SETTLE_ANSWERED,
        (
            """ledger_settle_answered(
    p_resolutions ledger_resolution[], p_models text[], p_skips_locked boolean)""",
            """ledger_settle_written(
    p_resolutions ledger_resolution[], p_models text[], p_cache_write_tokens bigint[],
    p_cache_write_picos bigint[], p_skips_locked boolean)""",
        ),
        (
            "delivered_tokens, is_estimated, operator_pays)\n",
            """delivered_tokens, is_estimated, operator_pays, cache_write_tokens,
            cache_write_pico)
""",
        ),
        (
            "i.delivered_tokens, i.is_estimated, i.operator_pays\n",
            """i.delivered_tokens, i.is_estimated, i.operator_pays,
               p_cache_write_tokens[i.ordinality], p_cache_write_picos[i.ordinality]
""",
        ),
    ),
    (_INTO_ROLLUP, _INTO_ROLLUP_WITH_WRITES),
    (_SUM, _SUM_WITH_WRITES),
    (_ADD, _ADD_WITH_WRITES),
)

STATEMENTS: Final = (
    """
    ALTER TABLE ledger_entries
      ADD COLUMN cache_write_tokens bigint NOT NULL DEFAULT 0,
      ADD COLUMN cache_write_pico bigint NOT NULL DEFAULT 0
    """,
    """
    COMMENT ON COLUMN ledger_entries.cache_write_tokens IS
        'The part of input_tokens that was written to a cache, if the model has a price for it'
    """,
    """
    COMMENT ON COLUMN ledger_entries.cache_write_pico IS
        'The part of input_pico that cache_write_tokens cost'
    """,
    *(
        f"ALTER TABLE {table} {_ADD_TO_SUMS}"
        for table in ("cost_daily", "cost_hourly", "ledger_closings")
    ),
    _SETTLE_WRITTEN,
    "ALTER FUNCTION ledger_settle_written SET plan_cache_mode = force_generic_plan",
    "ALTER FUNCTION ledger_settle_written SET enable_seqscan = off",
)

# Rows that are there already have no writes, so they need not be read.
CONTRACT: Final = (
    """
    ALTER TABLE ledger_entries
      ADD CONSTRAINT cache_writes_are_input
          CHECK (cache_write_tokens BETWEEN 0 AND input_tokens
                 AND cache_write_pico BETWEEN 0 AND input_pico) NOT VALID
    """,
)
