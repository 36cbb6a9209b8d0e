"""Organizations move between cells: frozen accounts admit nothing, and moved ones name their cell.

`policies_current_version` made two tables refer to each other. The version that it protected is
inserted in the transaction that names it, and versions are never removed.
"""

from typing import Final

from tollhouse.storage.migrations import ledger_admission

revision = "0019"
down_revision = "0018"


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
    *ledger_admission.UNFROZEN,
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
