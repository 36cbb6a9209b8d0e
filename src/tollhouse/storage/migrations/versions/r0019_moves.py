"""Organizations move between cells: frozen accounts admit nothing, and moved ones name their cell.

`policies_current_version` made two tables refer to each other. The version that it protected is
inserted in the transaction that names it, and versions are never removed.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_admission

revision = "0019"
down_revision = "0018"


def _changed(function: str, before: str, after: str) -> str:
    assert before in function, "the function of revision 0014"
    replaced = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    return replaced.replace(before, after)


_IS_FROZEN: Final = "coalesce({account}.frozen_until > clock_timestamp(), false)"
# A hold that was admitted before the freeze is found first, so that its retry is answered.
ADMIT_EACH: Final = _changed(
    ledger_admission.ADMIT_EACH,
    "ELSIF abs(extract(epoch",
    f"ELSIF {_IS_FROZEN.format(account='v_account')} THEN\n"
    "            verdict := 6;\n"
    "        ELSIF abs(extract(epoch",
)
ADMIT_ONE: Final = _changed(
    ledger_admission.ADMIT_ONE,
    "a.reserved_pico >= i.amount_pico\n      INTO",
    "a.reserved_pico >= i.amount_pico\n"
    f"           AND NOT {_IS_FROZEN.format(account='a')}\n      INTO",
)
ADMIT_BATCH: Final = _changed(
    ledger_admission.ADMIT_BATCH,
    "x.credit_pico - x.settled_pico - x.reserved_pico AS available",
    f"CASE WHEN {_IS_FROZEN.format(account='x')} THEN -1\n"
    "                            ELSE x.credit_pico - x.settled_pico - x.reserved_pico\n"
    "                        END AS available",
)

STATEMENTS: Final = (
    """
    ALTER TABLE organizations
      ADD COLUMN move_state text,
      ADD COLUMN move_id uuid,
      ADD COLUMN move_cell text,
      ADD COLUMN frozen_until timestamptz
    """,
    """
    COMMENT ON COLUMN organizations.frozen_until IS
        'Until then no key works. A freeze that is not released ends by itself.'
    """,
    """
    ALTER TABLE accounts
      ADD COLUMN frozen_until timestamptz
    """,
    """
    COMMENT ON COLUMN accounts.frozen_until IS
        'Until then nothing is admitted. As in organizations, here for admission alone.'
    """,
    ADMIT_EACH,
    ADMIT_ONE,
    ADMIT_BATCH,
    # A replaced function loses the settings that revision 0015 gave it.
    "ALTER FUNCTION ledger_admit_one SET plan_cache_mode = force_generic_plan",
    "ALTER FUNCTION ledger_admit_batch SET plan_cache_mode = force_generic_plan",
    "ALTER FUNCTION ledger_admit_batch SET enable_seqscan = off",
    # Deferred, so that an import may write a policy before its versions until the contract step.
    """
    ALTER TABLE policies ALTER CONSTRAINT policies_current_version DEFERRABLE INITIALLY DEFERRED
    """,
)

CONTRACT: Final[tuple[str, ...]] = (
    """
    ALTER TABLE organizations
      ADD CONSTRAINT organizations_move_state
          CHECK (move_state IN ('leaving', 'moved', 'arriving'))
    """,
    "ALTER TABLE policies DROP CONSTRAINT policies_current_version",
)
