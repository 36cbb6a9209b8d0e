-- Rows that no statement may change, and the account of a new organization.

CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;

CREATE OR REPLACE FUNCTION refuse_row_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;

CREATE OR REPLACE FUNCTION open_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO accounts (organization_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;
