"""Builds the sessions of the console from the settings."""

from typing import Final
from urllib.parse import urlsplit

from tollhouse.api.admin_permits import AdminPermits
from tollhouse.api.session_access import SessionAccess
from tollhouse.base.clock import Clock
from tollhouse.console.session_site import ROOT, CookieScope, SessionSite
from tollhouse.keys.directory import KeyDirectory
from tollhouse.sessions.tokens import SessionTokens
from tollhouse.settings import Settings
from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecrets

UNAUTHENTICATED_SHARE: Final = 4
"""Requests at `/console/session` use at most this part of the Admin pool."""


def session_access(settings: Settings, database: Database, masters: MasterSecrets) -> SessionAccess:
    """Return what authenticates the tokens of sessions, with the permits of Admin requests."""
    admin_permits = AdminPermits(
        at_once_max=settings.server.admin_requests_per_organization,
        wait_seconds=settings.server.admin_wait_seconds,
    )
    return SessionAccess(database, SessionTokens(masters), (), admin_permits)


def session_site(
    settings: Settings,
    database: Database,
    directory: KeyDirectory,
    access: SessionAccess,
    clock: Clock,
) -> SessionSite:
    """Return what answers at `/console/session`."""
    public = urlsplit(settings.server.public_url or "")
    size = settings.database.admin_pool_size
    return SessionSite(
        database.share(connections_max=max(1, size // UNAUTHENTICATED_SHARE)),
        directory,
        access,
        clock,
        cookie=CookieScope(
            path=public.path.rstrip("/") + ROOT.decode(), is_secure=public.scheme == "https"
        ),
        documentation_url=settings.documentation_url,
    )
