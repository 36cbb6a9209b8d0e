-- The partition of a day, made beside its parent and only then attached, which makes no statement wait.

CREATE OR REPLACE FUNCTION make_day_partition(p_parent text, p_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text := p_parent || '_' || to_char(p_day, 'YYYYMMDD');
    v_column text;
BEGIN
    IF EXISTS (SELECT FROM pg_inherits
                WHERE inhparent = p_parent::regclass
                  AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('make_day_partition'));
    SELECT a.attname INTO STRICT v_column
      FROM pg_partitioned_table t
      JOIN pg_attribute a ON a.attrelid = t.partrelid AND a.attnum = t.partattrs[0]
     WHERE t.partrelid = p_parent::regclass;
    IF to_regclass(quote_ident(v_name)) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %I (LIKE %I INCLUDING ALL,
                CONSTRAINT day_of_partition CHECK (%I >= %L AND %I < %L))',
            v_name, p_parent, v_column, p_day, v_column, p_day + 1);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_inherits
                    WHERE inhparent = p_parent::regclass
                      AND inhrelid = to_regclass(quote_ident(v_name))) THEN
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            p_parent, v_name, p_day, p_day + 1);
    END IF;
    RETURN true;
END
$$;
