"""What an expand step must leave, so that the previous release goes on beside it."""

import asyncpg

from tests.storage.catalogs import catalog_of, read_catalog, taken_away

FORBIDDEN = {
    "DROP TABLE rate_limits": "table rate_limits is gone",
    "ALTER TABLE rate_limits RENAME TO limits": "table rate_limits is gone",
    "ALTER TABLE requests DROP COLUMN error_param": "column requests.error_param is gone",
    "ALTER TABLE requests RENAME COLUMN error_param TO p": "column requests.error_param is gone",
    "ALTER TABLE job_leases ALTER COLUMN name TYPE varchar": (
        "column job_leases.name is character varying and was text"
    ),
    "ALTER TABLE instances ALTER COLUMN master_ids DROP DEFAULT": (
        "column instances.master_ids has no default any more"
    ),
    "ALTER TABLE instances ADD COLUMN host text NOT NULL": (
        "column instances.host is new, required and without default"
    ),
    "ALTER TABLE requests ALTER COLUMN error_param SET NOT NULL": (
        "column requests.error_param is required now"
    ),
    "ALTER TYPE request_record ADD ATTRIBUTE cell text": (
        "type request_record is gone or has other members"
    ),
    "DROP INDEX requests_of_error": (
        "index requests btree (organization_id, error_code, day, request_id) "
        "WHERE (error_code IS NOT NULL) is gone"
    ),
    "CREATE UNIQUE INDEX ON instances (started_at)": (
        "index instances btree (started_at) UNIQUE is new and unique"
    ),
    "ALTER TABLE instances ADD CONSTRAINT recent CHECK (started_at > '2020-01-01')": (
        "constraint instances.recent is new"
    ),
}


async def test_what_an_expand_step_must_not_do_is_found(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    before = await read_catalog(connection)

    for statement, finding in FORBIDDEN.items():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement)
        assert finding in taken_away(before, await read_catalog(connection))
        await transaction.rollback()
    await connection.close()


async def test_what_an_expand_step_may_do_is_not_found(database_url: str) -> None:
    before = await catalog_of(database_url)

    connection = await asyncpg.connect(database_url)
    await connection.execute(
        """
        CREATE TABLE cells (name text PRIMARY KEY, CHECK (name <> ''));
        ALTER TABLE instances ADD COLUMN cell text, ADD COLUMN load int NOT NULL DEFAULT 0;
        CREATE INDEX ON instances (cell);
        ALTER TABLE requests ALTER COLUMN status DROP NOT NULL;
        CREATE FUNCTION cell_of(uuid) RETURNS text LANGUAGE sql AS 'SELECT NULL';
        """
    )
    await connection.close()

    assert taken_away(before, await catalog_of(database_url)) == []
