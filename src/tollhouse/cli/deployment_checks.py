"""Checks of what a deployment keeps in its database."""

from datetime import timedelta
from typing import Final

from tollhouse.cli import master_status, workers
from tollhouse.cli.findings import Finding, Outcome, failure, ok, warning
from tollhouse.cli.session import Session
from tollhouse.keys import pepper_versions
from tollhouse.keys.pepper_versions import PepperMismatch
from tollhouse.storage import master_secrets, partitions
from tollhouse.storage.idempotency import SECRET_LIFETIME
from tollhouse.storage.master_secrets import MasterSecretMismatch
from tollhouse.storage.partitions import DailyTable
from tollhouse.storage.sealing import DATA_KEY_LIFETIME

PURGE_GRACE: Final = timedelta(hours=1)
DAYS_AHEAD: Final = 2
JOBS: Final = ("alerts", "partitions", "purge", "reaper")
START_A_WORKER: Final = (
    "A running worker purges every ten minutes. Start one, or look for task_failed in the log."
)


async def peppers(operator: Session) -> Finding:
    """The configuration's must be those that the stored keys were made with."""
    try:
        async with operator.database.transaction() as tx:
            await pepper_versions.verify(tx, operator.peppers)
            secrets = await pepper_versions.count_secrets(tx)
    except PepperMismatch as error:
        remedy = "Restore [secrets.peppers] from its backup; no worker starts without it."
        return failure("peppers", str(error), remedy)
    counted = ", ".join(f"version {version}: {secrets[version]}" for version in sorted(secrets))
    return ok("peppers", f"secrets made with {counted}" if counted else "no key was made yet")


async def master_secret(operator: Session) -> Finding:
    """What is encrypted for a day can be opened, and by no secret that was to be removed."""
    try:
        async with operator.database.transaction() as tx:
            await master_secrets.verify(tx, operator.masters)
    except MasterSecretMismatch as error:
        remedy = "Give every host the same master and previous_masters; no worker starts before."
        return failure("master secret", str(error), remedy)
    rows = await master_status.read(operator)
    removable = [row.id for row in master_status.removable(rows)]
    if removable:
        found = f"nothing needs the previous master secret {', '.join(map(str, removable))}"
        remedy = "Remove it from secrets.previous_masters on every host, and send SIGHUP to each."
        return warning("master secret", found, remedy)
    if not master_status.is_accepted_by_all(rows):
        found = "live workers do not all accept secrets.master"
        remedy = "Give every host the same [secrets] and send SIGHUP to each `tollhouse serve`."
        return warning("master secret", found, remedy)
    return ok("master secret", f"{rows[0].id} is used, {rows[0].sealed_values} values need it")


async def live_workers(operator: Session) -> Finding:
    """Keys are made with the newest version that all of them accept."""
    live = await workers.live(operator.database)
    if not live:
        return ok("workers", "none lives")
    accepted = {worker.pepper_versions for worker in live}
    shown = " or ".join(str(sorted(versions)) for versions in sorted(accepted, key=sorted))
    found = f"{len(live)} live, accepting pepper versions {shown}"
    configured = set(operator.peppers.versions)
    if accepted != {frozenset(configured)}:
        remedy = (
            f"The configuration here has {sorted(configured)}. Give every host the same "
            "[secrets.peppers] and send SIGHUP to each `tollhouse serve`."
        )
        return warning("workers", found, remedy)
    return ok("workers", found)


async def leases(operator: Session) -> Finding:
    """A job without a holder is not done by anyone."""
    rows = await operator.database.fetch_all(
        "SELECT name FROM job_leases WHERE expires_at > clock_timestamp() ORDER BY name"
    )
    held = [row["name"] for row in rows]
    found = f"held: {', '.join(held) or 'none'}"
    idle = [job for job in JOBS if job not in held]
    if idle and await workers.live(operator.database):
        remedy = f"Workers live, but none does: {', '.join(idle)}. Look for task_failed in the log."
        return warning("job leases", found, remedy)
    return ok("job leases", found)


async def ledger_days(operator: Session) -> Finding:
    """A request of a day without its table cannot be admitted."""
    return await _days(operator, "ledger days", DailyTable.LEDGER_ENTRIES)


async def request_days(operator: Session) -> Finding:
    """A request of a day without its table is in no record."""
    return await _days(operator, "request days", DailyTable.REQUESTS)


async def decision_days(operator: Session) -> Finding:
    """What is decided on a day without its tables is in no record."""
    first = await _days(operator, "decision days", DailyTable.EXAMINATIONS)
    second = await _days(operator, "decision days", DailyTable.POLICY_DECISIONS)
    return second if first.outcome is Outcome.OK else first


async def _days(operator: Session, check: str, table: DailyTable) -> Finding:
    async with operator.database.transaction() as tx:
        missing = await partitions.missing(tx, table, days_ahead=DAYS_AHEAD)
    if missing:
        found = f"{missing} of today and the next {DAYS_AHEAD} days have no table"
        remedy = "A running worker makes them every hour. Start one, or look for task_failed."
        return failure(check, found, remedy)
    return ok(check, f"today and the next {DAYS_AHEAD} days have their tables")


async def data_keys(operator: Session) -> Finding:
    """A day's data key that outlives its time opens what should be unreadable."""
    newest_overdue = (operator.clock.now() - DATA_KEY_LIFETIME - PURGE_GRACE).date()
    rows = await operator.database.fetch_all(
        "SELECT count(*) AS overdue FROM data_keys WHERE day <= $1", newest_overdue
    )
    return _overdue("data keys", rows[0]["overdue"], "data keys are older than 48 hours")


async def sealed_values(operator: Session) -> Finding:
    """A key's value can be replayed for a day, and must be gone then."""
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
