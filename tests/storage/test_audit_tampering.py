"""Whatever a superuser of the database does to audit rows behind the triggers is found."""

import asyncpg
import pytest

from tests.support.organization_fixture import OrganizationFixture
from tollhouse.storage import audit_chain
from tollhouse.storage.audit_chain import ChainFault, ChainHead, VerifiedChain
from tollhouse.storage.database import Database

ROWS = 6
CHANGES = {
    "organization_id": "gen_random_uuid()",
    "id": "gen_random_uuid()",
    "occurred_at": "occurred_at + interval '1 microsecond'",
    "actor_type": "'person'",
    "actor_id": "''",
    "action": "action || ' '",
    "resource_type": "'key'",
    "resource_id": "upper(resource_id)",
    "changes": "'[]'",
    "digest_before": "''",
    "digest_after": "NULL",
    "request_id": "gen_random_uuid()",
    "actor_name": "''",
}
"""How each column of the third row is changed."""
HELPERS = """
    CREATE FUNCTION third() RETURNS uuid LANGUAGE sql AS
    'SELECT audit_id FROM audit_chain WHERE number = 3';
    CREATE FUNCTION insert_another() RETURNS void LANGUAGE sql AS
    'INSERT INTO audit_log
     SELECT organization_id, gen_random_uuid(), occurred_at, actor_type, actor_id, action,
            resource_type, resource_id, changes, digest_before, digest_after, request_id
       FROM audit_log
      WHERE id = (SELECT audit_id FROM audit_chain WHERE number = 2)';
"""
TAMPERING = {
    "an audit row is deleted": ("DELETE FROM audit_log WHERE id = third()", "missing", 3),
    "a link is deleted": ("DELETE FROM audit_chain WHERE number = 3", "missing", 3),
    "a row is deleted with its link": (
        "DELETE FROM audit_log WHERE id = third(); DELETE FROM audit_chain WHERE number = 3",
        *("missing", 3),
    ),
    "a row is deleted and the others are numbered again": (
        """
        DELETE FROM audit_log WHERE id = third();
        DELETE FROM audit_chain WHERE number = 3;
        UPDATE audit_chain SET number = number - 1 + 100 WHERE number > 3;
        UPDATE audit_chain SET number = number - 100 WHERE number > 100;
        UPDATE audit_heads SET number = number - 1
        """,
        *("unlinked", 3),
    ),
    "the first row is deleted": ("DELETE FROM audit_chain WHERE number = 1", "missing", 1),
    "the last row is deleted": (
        """
        DELETE FROM audit_log WHERE id = (SELECT audit_id FROM audit_chain WHERE number = 6);
        DELETE FROM audit_chain WHERE number = 6
        """,
        *("truncated", 6),
    ),
    "the last two are deleted and the head is set back without its hash": (
        """
        DELETE FROM audit_log WHERE id IN (SELECT audit_id FROM audit_chain WHERE number > 4);
        DELETE FROM audit_chain WHERE number > 4;
        UPDATE audit_heads SET number = 4
        """,
        *("unlinked", 4),
    ),
    "a row is inserted without a link": ("SELECT insert_another()", "inserted", None),
    "a row is appended with a link behind the head": (
        """
        SELECT insert_another();
        INSERT INTO audit_chain
        SELECT c.organization_id, 7, a.id, c.hash, c.hash
          FROM audit_chain c, audit_log a
         WHERE c.number = 6 AND a.id NOT IN (SELECT audit_id FROM audit_chain)
        """,
        *("inserted", 7),
    ),
    "a row is inserted with a sound link": (
        """
        UPDATE audit_chain SET number = number + 101 WHERE number > 2;
        UPDATE audit_chain SET number = number - 100 WHERE number > 100;
        UPDATE audit_heads SET number = 2, hash = (SELECT hash FROM audit_chain WHERE number = 2);
        SET session_replication_role = origin;
        SELECT insert_another();
        SET CONSTRAINTS ALL IMMEDIATE;
        UPDATE audit_heads SET number = 7, hash = (SELECT hash FROM audit_chain WHERE number = 7)
        """,
        *("unlinked", 4),
    ),
    "two links are exchanged": (
        """
        UPDATE audit_chain SET number = 100 WHERE number = 3;
        UPDATE audit_chain SET number = 3 WHERE number = 4;
        UPDATE audit_chain SET number = 4 WHERE number = 100
        """,
        *("unlinked", 3),
    ),
    "two links get each other's row": (
        """
        UPDATE audit_chain c
           SET audit_id = o.audit_id
          FROM audit_chain o
         WHERE c.number IN (3, 4) AND o.number = 7 - c.number
        """,
        *("changed", 3),
    ),
    "a hash is changed": ("UPDATE audit_chain SET hash = '' WHERE number = 3", "changed", 3),
    "the last hash is changed with the head": (
        "UPDATE audit_chain SET hash = '' WHERE number = 6; UPDATE audit_heads SET hash = ''",
        *("changed", 6),
    ),
    "the head is changed": ("UPDATE audit_heads SET hash = ''", "unlinked", 6),
    "the head is deleted": ("DELETE FROM audit_heads", "inserted", 1),
    "the function of the database hashes otherwise": (
        """
        CREATE OR REPLACE FUNCTION audit_hash(VARIADIC p_fields bytea[]) RETURNS bytea
        LANGUAGE sql IMMUTABLE AS 'SELECT sha256(p_fields[1])';
        SET session_replication_role = origin;
        SELECT insert_another()
        """,
        *("changed", 7),
    ),
}
"""Statements, the fault that they are, and the number of the first wrong row."""
REWRITING = """
    CREATE TABLE rewritten AS
    SELECT a.*, c.number FROM audit_log a JOIN audit_chain c ON c.audit_id = a.id;
    DELETE FROM audit_log;
    DELETE FROM audit_chain;
    DELETE FROM audit_heads;
    UPDATE rewritten SET action = 'another' WHERE number = 3;
    SET session_replication_role = origin;
    INSERT INTO audit_log
    SELECT organization_id, id, occurred_at, actor_type, actor_id, action, resource_type,
           resource_id, changes, digest_before, digest_after, request_id, actor_name
      FROM rewritten
     WHERE number <= {0}
     ORDER BY number
"""


async def _tamper(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(statements)
    await connection.close()


async def _head(org: OrganizationFixture, url: str) -> ChainHead:
    await _tamper(url, HELPERS)
    for number in range(ROWS - 1):
        await org.project(f"project {number}")
    return (await _verified(org.database, org)).head


async def _verified(
    database: Database, org: OrganizationFixture, stored: ChainHead | None = None
) -> VerifiedChain:
    async with database.snapshot() as tx:
        return await audit_chain.verify(tx, org.organization_id, stored=stored)


@pytest.mark.guarantee("T40")
async def test_a_change_of_any_column_is_found(org: OrganizationFixture, database_url: str) -> None:
    await _head(org, database_url)
    columns = await org.database.fetch_all(
        """
        SELECT attname::text AS name
          FROM pg_attribute
         WHERE attrelid = 'audit_log'::regclass AND attnum > 0 AND NOT attisdropped
         ORDER BY attnum
        """
    )
    assert list(CHANGES) == [column["name"] for column in columns]
    await _tamper(database_url, "CREATE TABLE saved AS SELECT * FROM audit_log")
    third = await org.database.fetch_all("SELECT audit_id FROM audit_chain WHERE number = 3")

    for column, value in CHANGES.items():
        await _tamper(
            database_url,
            f"UPDATE audit_log SET {column} = {value} WHERE id = third()",  # noqa: S608 - above
        )

        found = (await _verified(org.database, org)).fault

        assert found is not None, column
        is_gone = column in {"organization_id", "id"}
        assert found.fault is (ChainFault.MISSING if is_gone else ChainFault.CHANGED), column
        assert (found.number, found.audit_id) == (3, third[0]["audit_id"]), column
        await _tamper(
            database_url, "DELETE FROM audit_log; INSERT INTO audit_log SELECT * FROM saved"
        )
        assert (await _verified(org.database, org)).fault is None


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize("case", TAMPERING)
async def test_the_first_wrong_row_is_found(
    org: OrganizationFixture, database_url: str, case: str
) -> None:
    statements, fault, number = TAMPERING[case]
    head = await _head(org, database_url)
    assert head.number == ROWS

    await _tamper(database_url, statements)
    found = await _verified(org.database, org)

    assert found.fault is not None
    assert (found.fault.fault, found.fault.number) == (fault, number)
    assert found.fault.organization_id == org.organization_id


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize(
    ("rows", "fault", "number"),
    [(ROWS, ChainFault.REWRITTEN, ROWS), (ROWS - 1, ChainFault.TRUNCATED, ROWS)],
)
async def test_a_rewritten_chain_is_found_by_its_stored_head_alone(
    org: OrganizationFixture, database_url: str, rows: int, fault: ChainFault, number: int
) -> None:
    stored = await _head(org, database_url)
    await org.project("since the head was stored")
    assert (await _verified(org.database, org, stored)).fault is None

    await _tamper(database_url, REWRITING.format(rows))

    assert (await _verified(org.database, org)).fault is None
    found = (await _verified(org.database, org, stored)).fault
    assert found is not None
    assert (found.fault, found.number) == (fault, number)


@pytest.mark.guarantee("T40")
async def test_a_removed_chain_is_found_by_its_stored_head_alone(
    org: OrganizationFixture, database_url: str
) -> None:
    stored = await _head(org, database_url)

    await _tamper(database_url, "DELETE FROM audit_chain; DELETE FROM audit_heads")

    found = await _verified(org.database, org)
    assert found.fault is not None
    assert (found.fault.fault, found.head.number) == (ChainFault.INSERTED, 0)
    with_head = (await _verified(org.database, org, stored)).fault
    assert with_head is not None
    assert (with_head.fault, with_head.number) == (ChainFault.TRUNCATED, 1)


@pytest.mark.guarantee("T40")
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_chain SET number = 0", "DELETE FROM audit_chain", "TRUNCATE audit_chain"],
)
async def test_the_chain_can_only_grow(
    org: OrganizationFixture, database_url: str, statement: str
) -> None:
    del org
    connection = await asyncpg.connect(database_url)
    with pytest.raises(asyncpg.RaiseError, match="audit_chain is append-only"):
        await connection.execute(statement)
    await connection.close()
