-- Triggers, and partitions for the first days.

CREATE TRIGGER organizations_open_account
AFTER INSERT ON organizations
FOR EACH ROW EXECUTE FUNCTION open_account();

CREATE TRIGGER audit_log_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER audit_chain_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_chain
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE CONSTRAINT TRIGGER audit_log_chain
AFTER INSERT ON audit_log
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION chain_audit_row();

CREATE TRIGGER policy_versions_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_versions
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER credit_grants_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_grants
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER ledger_entries_append_only
BEFORE UPDATE OR DELETE ON ledger_entries
FOR EACH ROW EXECUTE FUNCTION refuse_row_change();

CREATE TRIGGER operator_decisions_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_decisions
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER ledger_closings_append_only
BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_closings
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER policy_decisions_alert
AFTER INSERT ON policy_decisions REFERENCING NEW TABLE AS decided
FOR EACH STATEMENT EXECUTE FUNCTION alert_on_match();

SELECT make_day_partition(parent, current_date + ahead)
  FROM unnest(ARRAY['ledger_entries', 'requests', 'evaluations', 'policy_decisions']) parent,
       generate_series(-1, 7) ahead;
