"""Checks of the data that a deployment stores in its database."""

from datetime import timedelta
from typing import Final

from tollhouse.base.findings import Finding, FindingOutcome, failure, ok, warning
from tollhouse.cli.keys import workers
from tollhouse.cli.keys.secrets import is_accepted_by_all, read_status, removable
from tollhouse.cli.session import Session
from tollhouse.ledger import verifier
from tollhouse.ledger.verifier import VerificationState
from tollhouse.storage import master_secrets, partitions
from tollhouse.storage.idempotency import SECRET_LIFETIME
from tollhouse.storage.master_secrets import MasterSecretMismatch
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.sealing import DATA_KEY_LIFETIME

PURGE_GRACE: Final = timedelta(hours=1)
DAYS_AHEAD: Final = 2
VERIFIED_WITHIN: Final = timedelta(days=1)
JOBS: Final = (
    *(
        "activity-retention",
        "alert-delivery",
        "alert-look",
        "alert-retention",
        "alerts",
        "audit-heads",
        "console-sessions",
        "cost-hour-retention",
        "decision-retention",
        "key-secrets",
    ),
    *("ledger-retention", "ledger-verification", "partitions", "purge", "reaper"),
)
"""The names of all leased jobs."""
START_A_WORKER: Final = (
    "A running worker purges every ten minutes. Start one, or look for task_failed in the log."
)


async def master_secret(operator: Session) -> Finding:
    """Check that the master secrets open all data keys, and that none is unused."""
    try:
        async with operator.database.transaction() as tx:
            await master_secrets.verify(tx, operator.masters)
    except MasterSecretMismatch as error:
        remedy = "Give every host the same master and previous_masters. No worker starts before."
        return failure("master secret", str(error), remedy)
    rows = await read_status(operator)
    if unused := [row.id for row in removable(rows)]:
        found = f"nothing needs the previous master secret {', '.join(map(str, unused))}"
        remedy = "Remove it from secrets.previous_masters on every host, and send SIGHUP to each."
        return warning("master secret", found, remedy)
    if not is_accepted_by_all(rows):
        found = "live workers do not all accept secrets.master"
        remedy = "Give every host the same [secrets] and send SIGHUP to each `tollhouse serve`."
        return warning("master secret", found, remedy)
    return ok("master secret", f"{rows[0].id} is used, {rows[0].sealed_values} values need it")


async def live_workers(operator: Session) -> Finding:
    """Count the live workers. Whether they accept the master secret is a check of its own."""
    live = await workers.live(operator.database)
    return ok("workers", f"{len(live)} running" if live else "none is running")


async def leases(operator: Session) -> Finding:
    """Check that a worker holds the lease of every background job."""
    rows = await operator.database.fetch_all(
        "SELECT name FROM job_leases WHERE expires_at > clock_timestamp() ORDER BY name"
    )
    held = [row["name"] for row in rows]
    found = f"held: {', '.join(held) or 'none'}"
    idle = [job for job in JOBS if job not in held]
    if idle and await workers.live(operator.database):
        remedy = f"No running worker does {', '.join(idle)}. Look for task_failed in the log."
        return warning("job leases", found, remedy)
    return ok("job leases", found)


async def ledger(operator: Session) -> Finding:
    """Check what the continuous verification has found, and that it goes on."""
    async with operator.database.transaction() as tx:
        return ledger_finding(await verifier.state(tx))


def ledger_finding(state: VerificationState) -> Finding:
    """Return the finding for the state of the verification."""
    if state.oldest_age is None:
        return ok("ledger", "there is nothing to verify")
    if state.differing_organizations:
        found = f"numbers of {state.differing_organizations} organizations differ"
        return failure("ledger", found, "Run `tollhouse ledger verify` and follow its runbook.")
    age = timedelta(seconds=round(state.oldest_age.total_seconds()))
    if age > VERIFIED_WITHIN:
        remedy = "Look for task_failed of job-ledger-verification in the log of the workers."
        return warning("ledger", f"an organization was not verified for {age}", remedy)
    return ok("ledger", f"every organization was verified or created within the last {age}")


async def ledger_days(operator: Session) -> Finding:
    """Check the tables of ledger entries: without its day's table no request is admitted."""
    return await _days(operator, "ledger days", DailyTable.LEDGER_ENTRIES)


async def request_days(operator: Session) -> Finding:
    """Check the tables of requests: without its day's table a request is not recorded."""
    return await _days(operator, "request days", DailyTable.REQUESTS)


async def decision_days(operator: Session) -> Finding:
    """Check the tables of decisions: without its day's tables a decision is not recorded."""
    first = await _days(operator, "decision days", DailyTable.EVALUATIONS)
    second = await _days(operator, "decision days", DailyTable.POLICY_DECISIONS)
    return second if first.outcome is FindingOutcome.OK else first


async def _days(operator: Session, check: str, table: DailyTable) -> Finding:
    async with operator.database.transaction() as tx:
        missing = await partitions.missing(tx, table, days_ahead=DAYS_AHEAD)
    if missing:
        found = f"no table for {missing} of today and the next {DAYS_AHEAD} days"
        remedy = "A running worker creates them every hour. Start one, or look for task_failed."
        return failure(check, found, remedy)
    return ok(check, f"tables for today and the next {DAYS_AHEAD} days exist")


async def data_keys(operator: Session) -> Finding:
    """Check that expired data keys were deleted."""
    newest_overdue = (operator.clock.now() - DATA_KEY_LIFETIME - PURGE_GRACE).date()
    rows = await operator.database.fetch_all(
        "SELECT count(*) AS overdue FROM data_keys WHERE day <= $1", newest_overdue
    )
    return _overdue("data keys", rows[0]["overdue"], "data keys are older than 48 hours")


async def sealed_values(operator: Session) -> Finding:  # all organizations: all of the deployment
    """Check that key values were deleted after the day in which they can be replayed."""
    created_before = operator.clock.now() - SECRET_LIFETIME - PURGE_GRACE
    rows = await operator.database.fetch_all(
        """
        SELECT count(*) AS overdue
          FROM idempotency_records
         WHERE sealed IS NOT NULL
           AND created_at <= $1
        """,
        created_before,
    )
    return _overdue("sealed values", rows[0]["overdue"], "sealed values are older than 25 hours")


def _overdue(check: str, count: int, what: str) -> Finding:
    if count:
        return failure(check, f"{count} {what}", START_A_WORKER)
    return ok(check, f"no {what}")
