"""Plain names: evaluations, what the operator writes off, and who a request failed by.

Every row of a hold that was written off changes its kind, so that this reads the whole ledger.
"""

from typing import Final

from tollhouse.storage.migrations.ledger_settlement import SETTLE

revision = "0013"
down_revision = "0012"

STATEMENTS: Final = (
    "ALTER TABLE accounts RENAME COLUMN absorbed_excess_pico TO written_off_excess_pico",
    "ALTER TABLE accounts RENAME COLUMN absorbed_unknown_pico TO written_off_unknown_pico",
    "ALTER TABLE requests RENAME COLUMN culprit TO failed_by",
    "ALTER TABLE examinations RENAME COLUMN examined_at TO evaluated_at",
    "ALTER TABLE policy_decisions RENAME COLUMN examined_at TO evaluated_at",
    # The table, its partitions and their indexes.
    """
    DO $$
    DECLARE
        named text;
    BEGIN
        FOR named IN
            SELECT relname FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relname ~ '^examinations'
        LOOP
            EXECUTE format('ALTER TABLE %I RENAME TO %I', named,
                           replace(named, 'examinations', 'evaluations'));
        END LOOP;
    END
    $$
    """,
    # Partitions have the constraint of their own beside the inherited one.
    """
    DO $$
    DECLARE
        part regclass;
    BEGIN
        ALTER TABLE ledger_entries DISABLE TRIGGER ledger_entries_append_only;
        ALTER TABLE ledger_entries DROP CONSTRAINT entries_kind_fits_phase;
        FOR part IN
            SELECT inhrelid FROM pg_inherits WHERE inhparent = 'ledger_entries'::regclass
        LOOP
            EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER,'
                           ' DROP CONSTRAINT IF EXISTS entries_kind_fits_phase', part);
            EXECUTE format('UPDATE %s SET kind = ''write_off'' WHERE kind = ''absorb''', part);
            EXECUTE format('ALTER TABLE %s ENABLE TRIGGER USER', part);
        END LOOP;
        ALTER TABLE ledger_entries ENABLE TRIGGER ledger_entries_append_only;
    END
    $$
    """,
    """
    ALTER TABLE ledger_entries
      ADD CONSTRAINT entries_kind_fits_phase CHECK (
        CASE phase WHEN 0 THEN kind = 'reserve' ELSE kind IN ('post', 'void', 'write_off') END)
    """,
    SETTLE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1),
)
