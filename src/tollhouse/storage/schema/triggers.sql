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

CREATE TRIGGER spending_counters_alert
AFTER UPDATE OF settled_pico, limit_pico ON spending_counters
FOR EACH ROW
WHEN (div(NEW.settled_pico * 100, nullif(NEW.limit_pico, 0))
      > coalesce(div(OLD.settled_pico * 100, nullif(OLD.limit_pico, 0)), -1))
EXECUTE FUNCTION alert_on_counter();

CREATE TRIGGER spending_counters_short_alert
AFTER UPDATE OF short_settled_pico, short_limit_pico ON spending_counters
FOR EACH ROW
WHEN (NEW.short_limit_pico > 0
      AND div(NEW.short_settled_pico * 100, nullif(NEW.short_limit_pico, 0))
          > coalesce(div(OLD.short_settled_pico * 100, nullif(OLD.short_limit_pico, 0)), -1))
EXECUTE FUNCTION alert_on_short_window();

CREATE TRIGGER accounts_alert
AFTER UPDATE OF settled_pico, credit_pico ON accounts
FOR EACH ROW
WHEN (NEW.settled_pico >= NEW.next_alert_pico OR NEW.credit_pico <> OLD.credit_pico)
EXECUTE FUNCTION alert_on_account();

CREATE TRIGGER alert_subscriptions_next
AFTER INSERT OR DELETE OR UPDATE OF credit_percents, credit_below_pico ON alert_subscriptions
FOR EACH ROW EXECUTE FUNCTION alert_on_subscription();

CREATE TRIGGER unsettled_holds_alert
AFTER INSERT ON unsettled_holds REFERENCING NEW TABLE AS marked
FOR EACH STATEMENT EXECUTE FUNCTION alert_on_unsettled();

CREATE TRIGGER policy_decisions_alert
AFTER INSERT ON policy_decisions REFERENCING NEW TABLE AS decided
FOR EACH STATEMENT EXECUTE FUNCTION alert_on_match();

SELECT make_day_partition(parent, current_date + ahead)
  FROM unnest(ARRAY['ledger_entries', 'requests', 'evaluations', 'policy_decisions']) parent,
       generate_series(-1, 7) ahead;
