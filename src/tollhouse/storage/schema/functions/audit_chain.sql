-- The hash chain of each organization's audit rows.
--
-- Rows from before the chain stay outside of it; its first hash has their number. The trigger
-- runs at the commit: its lock on the head is the last one that a transaction takes, so that no
-- other transaction can hold one that it still needs.

CREATE OR REPLACE FUNCTION audit_hash(VARIADIC p_fields bytea[]) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(string_agg(coalesce(int4send(octet_length(f)) || f, int4send(-1)), ''::bytea
                             ORDER BY n))
      FROM unnest('tollhouse audit 1'::bytea || p_fields) WITH ORDINALITY t (f, n);
$$;

CREATE OR REPLACE FUNCTION chain_audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_head audit_heads;
    v_hash bytea;
BEGIN
    -- A move brings the chain of the rows along.
    IF EXISTS (SELECT FROM organizations
                WHERE id = NEW.organization_id AND move_state = 'arriving') THEN
        RETURN NULL;
    END IF;
    INSERT INTO audit_heads
    VALUES (NEW.organization_id, 0, audit_hash(uuid_send(NEW.organization_id)))
    ON CONFLICT DO NOTHING;
    SELECT * INTO v_head
      FROM audit_heads
     WHERE organization_id = NEW.organization_id
       FOR UPDATE;
    v_hash := audit_hash(
        v_head.hash, int8send(v_head.number + 1), uuid_send(NEW.organization_id), uuid_send(NEW.id),
        int8send((extract(epoch FROM NEW.occurred_at) * 1000000)::bigint),
        convert_to(NEW.actor_type, 'UTF8'), convert_to(NEW.actor_id, 'UTF8'),
        convert_to(NEW.action, 'UTF8'), convert_to(NEW.resource_type, 'UTF8'),
        convert_to(NEW.resource_id, 'UTF8'), convert_to(NEW.changes::text, 'UTF8'),
        NEW.digest_before, NEW.digest_after, uuid_send(NEW.request_id),
        convert_to(NEW.actor_name, 'UTF8'));
    INSERT INTO audit_chain (organization_id, number, audit_id, previous_hash, hash)
    VALUES (NEW.organization_id, v_head.number + 1, NEW.id, v_head.hash, v_hash);
    UPDATE audit_heads
       SET number = v_head.number + 1, hash = v_hash
     WHERE organization_id = NEW.organization_id;
    RETURN NULL;
END
$$;
