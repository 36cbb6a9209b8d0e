"""All jobs that one worker at a time runs for the deployment."""

from functools import partial

from tollhouse.activity import service as activity
from tollhouse.archive.service import is_archived as archived
from tollhouse.base.clock import Clock
from tollhouse.decisions import service as decisions
from tollhouse.keys import service as keys
from tollhouse.ledger import jobs as ledger_jobs
from tollhouse.ledger.verifier import Verifier
from tollhouse.nightly_export import export_job
from tollhouse.sessions import service as sessions
from tollhouse.settings import Settings
from tollhouse.storage import jobs as storage_jobs
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.sealing import Sealer


def leased_jobs(
    settings: Settings,
    clock: Clock,
    sealer: Sealer,
    *,
    inference: Database,
    background: Database,
    maintenance: Database,
    verifier: Verifier,
) -> tuple[LeasedJob, ...]:
    """Return the jobs of all packages, each with the pool that it may use."""
    is_archived = None if settings.archive.url is None else partial(archived, maintenance)
    return (
        *storage_jobs.jobs(
            maintenance, sealer, clock, record_days=settings.idempotency.record_days
        ),
        *ledger_jobs.jobs(
            inference,
            background=background,
            maintenance=maintenance,
            verifier=verifier,
            entry_days=settings.ledger.entry_days,
            is_archived=is_archived,
        ),
        keys.purge_job(maintenance, clock),
        sessions.purge_job(maintenance, clock),
        activity.retention_job(
            maintenance,
            clock,
            record_days=settings.activity.record_days,
            is_archived=is_archived,
        ),
        decisions.retention_job(maintenance, clock, decision_days=settings.policies.decision_days),
        *(() if settings.exports.url is None else (export_job(settings),)),
    )
