"""A settlement and an admission without sets, and sets without planning for every batch.

A batch of two items took longer to plan than to run. The statements of a batch find every row by
an index, so a plan that is made once serves batches of all sizes.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_resolution

revision = "0015"
down_revision = "0014"

_PLANNED_ONCE: Final = tuple(
    f"ALTER FUNCTION {function} SET plan_cache_mode = force_generic_plan"
    for function in (
        *("ledger_admit_one", "ledger_settle_one"),
        *("ledger_admit_batch", "ledger_settle_batch"),
    )
)
# A plan that was made while a table was small would read the whole of a larger one.
_BY_INDEX: Final = tuple(
    f"ALTER FUNCTION {function} SET enable_seqscan = off"
    for function in ("ledger_admit_batch", "ledger_settle_batch")
)

# Waits for the lock of the account unless locked accounts are skipped. The functions that follow
# find it locked by their own transaction.
_APPLY_PAIR: Final = """
CREATE FUNCTION ledger_apply_pair(
    p_resolution   ledger_resolution,
    p_skips_locked boolean,
    p_hold         ledger_hold,
    p_instance_id  uuid,
    p_is_retry     boolean
) RETURNS TABLE (code smallint, available_pico numeric, held_pico numeric)
LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
BEGIN
    IF NOT p_skips_locked THEN
        PERFORM FROM accounts a
          WHERE a.organization_id = p_resolution.organization_id
            FOR UPDATE;
    END IF;
    code := ledger_settle_one(p_resolution);
    RETURN NEXT;
    SELECT d.verdict, d.available_pico, d.held_pico
      INTO code, available_pico, held_pico
      FROM ledger_admit_one(p_hold, p_instance_id, p_is_retry) d;
    RETURN NEXT;
END
$$
"""

STATEMENTS: Final = (
    ledger_resolution.SETTLE_ONE_BY_NAME,
    *_PLANNED_ONCE,
    *_BY_INDEX,
    _APPLY_PAIR,
)
