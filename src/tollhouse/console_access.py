"""Builds the sessions of the console, and the sign-in of people, from the settings."""

from typing import Final, Literal
from urllib.parse import urlsplit

from tollhouse.api.admin_permits import AdminPermits
from tollhouse.api.session_access import SessionAccess
from tollhouse.backends.transport import Transport
from tollhouse.base.clock import Clock
from tollhouse.console.cookies import BrowserCookie
from tollhouse.console.provider import OpenIdProvider, ProviderConfig
from tollhouse.console.session_site import CALLBACK, ROOT, SessionSite
from tollhouse.console.sign_in import PersonSignIn
from tollhouse.keys.directory import KeyDirectory
from tollhouse.sessions.tokens import SessionTokens, Signer
from tollhouse.sessions.types import GroupGrant
from tollhouse.settings import OidcSettings, Settings
from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecrets

UNAUTHENTICATED_SHARE: Final = 4
"""Requests at `/console/session` use at most this part of the Admin pool."""


class ConsoleAccess:
    """What authenticates the console: sessions, their tokens, and the sign-in of people."""

    def __init__(
        self, settings: Settings, database: Database, masters: MasterSecrets, clock: Clock
    ) -> None:
        self._settings = settings
        self._masters = masters
        self._clock = clock
        self._transport = Transport()
        size = settings.database.admin_pool_size
        self._database = database.share(connections_max=max(1, size // UNAUTHENTICATED_SHARE))
        self.sessions = SessionAccess(
            database,
            SessionTokens(masters),
            _grants(settings.oidc),
            AdminPermits(
                at_once_max=settings.server.admin_requests_per_organization,
                wait_seconds=settings.server.admin_wait_seconds,
            ),
        )

    def site(self, directory: KeyDirectory) -> SessionSite:
        """Return what answers at `/console/session`."""
        return SessionSite(
            self._database,
            directory,
            self.sessions,
            self._clock,
            cookie=self._cookie("tollhouse_session", ROOT, "Strict"),
            people=self._people(self._settings.oidc),
            documentation_url=self._settings.documentation_url,
        )

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._transport.close()

    def _people(self, oidc: OidcSettings) -> PersonSignIn | None:
        if oidc.issuer is None or oidc.client_id is None:
            return None
        public_url = (self._settings.server.public_url or "").rstrip("/")
        config = ProviderConfig(
            issuer=oidc.issuer,
            client_id=oidc.client_id,
            client_secret=oidc.client_secret,
            scopes=oidc.scopes,
            groups_claim=oidc.groups_claim,
            name_claim=oidc.name_claim,
            redirect_uri=public_url + CALLBACK.decode(),
            signed_out_uri=f"{public_url}/console",
        )
        return PersonSignIn(
            OpenIdProvider(config, self._transport, self._clock),
            self._database,
            self.sessions,
            Signer(self._masters, "sign-in"),
            self._clock,
            cookie=self._cookie("tollhouse_sign_in", CALLBACK, "Lax"),
            hint_cookie=self._cookie("tollhouse_sign_out_hint", ROOT, "Strict"),
        )

    def _cookie(self, name: str, path: bytes, same_site: Literal["Strict", "Lax"]) -> BrowserCookie:
        public = urlsplit(self._settings.server.public_url or "")
        return BrowserCookie(
            plain_name=name,
            path=path.decode(),
            is_secure=public.scheme == "https",
            same_site=same_site,
        )


def _grants(oidc: OidcSettings) -> tuple[GroupGrant, ...]:
    """Return the grants; none without a provider, also if some are still configured."""
    if oidc.issuer is None:
        return ()
    return tuple(
        GroupGrant(
            group=grant.group,
            organization_id=grant.organization_id,
            permissions=None if grant.permissions == "all" else frozenset(grant.permissions),
        )
        for grant in oidc.grants
    )
