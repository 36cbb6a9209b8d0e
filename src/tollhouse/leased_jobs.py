"""All jobs that one worker at a time runs for the deployment."""

from functools import partial

from tollhouse.activity import service as activity
from tollhouse.alerts.delivery import AlertDeliverer, DeliveryConfig
from tollhouse.alerts.mail import MailServer
from tollhouse.archive.service import is_archived as archived
from tollhouse.base.clock import Clock
from tollhouse.decisions import service as decisions
from tollhouse.keys import service as keys
from tollhouse.ledger import jobs as ledger_jobs
from tollhouse.ledger.verifier import Verifier
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
        *AlertDeliverer(maintenance, sealer, clock, _delivery_config(settings)).jobs(),
    )


def _delivery_config(all_settings: Settings) -> DeliveryConfig:
    settings = all_settings.alerts
    mail_server = None
    if settings.smtp_host is not None and settings.smtp_sender is not None:
        mail_server = MailServer(
            host=settings.smtp_host,
            port=settings.smtp_port,
            tls=settings.smtp_tls,
            user=settings.smtp_user,
            password=settings.smtp_password,
            sender=settings.smtp_sender,
            seconds=settings.timeout_seconds,
        )
    return DeliveryConfig(
        seconds=settings.timeout_seconds,
        attempts_max=settings.attempts_max,
        attempts_per_hour=all_settings.quotas.alert_attempts_per_hour,
        retry_seconds=settings.retry_seconds,
        days=settings.delivery_days,
        networks=settings.networks(),
        mail_server=mail_server,
    )
