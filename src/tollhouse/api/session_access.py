"""Who acts by a session of the console: authentication by its tokens."""

from dataclasses import replace
from datetime import datetime

from tollhouse.api.admin_permits import AdminPermits
from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.ids import OrganizationId
from tollhouse.base.permissions import Permission
from tollhouse.keys import lookup, rules
from tollhouse.keys.errors import InvalidKey, OrganizationMoved, OrganizationSuspended
from tollhouse.keys.types import Admin, KeyKind, KnownKey, RequiredPermission
from tollhouse.sessions import rules as session_rules
from tollhouse.sessions import service
from tollhouse.sessions.errors import SessionEnded
from tollhouse.sessions.tokens import SessionTokens
from tollhouse.sessions.types import ConsoleSession, GroupGrant, SessionToken
from tollhouse.storage.database import Database, Mutation, Transaction


class SessionAccess:
    """Finds the Admin key or the person of a session. One per worker.

    `grants` are what groups of people may do. Nothing is cached: a session, its key and the
    organization are read for every request, so that an end holds at once.
    """

    def __init__(
        self,
        database: Database,
        tokens: SessionTokens,
        grants: tuple[GroupGrant, ...],
        admin_permits: AdminPermits,
    ) -> None:
        self._database = database
        self.grants = grants
        self.tokens = tokens
        self.admin_permits = admin_permits

    async def authenticate(
        self, token: SessionToken, required: RequiredPermission, *, now: datetime
    ) -> Admin:
        """Return the caller, if it has the permission. Raises `SessionEnded` and as `authorize`."""
        # One organization must not use all connections for looking up its own sessions.
        permit = await self.admin_permits.acquire(token.organization_id)
        try:
            async with self._database.transaction() as tx:
                session = await service.find(tx, token.session_id, now=now)
                known = await self.known_of(tx, session, token.organization_id)
        finally:
            permit.release()
        return _admin(session, known, required, now)

    async def require_working(
        self, tx: Mutation, admin: Admin, *, permission: Permission, now: datetime
    ) -> Admin:
        """Return the caller of a session again, and block the end of its right until the commit."""
        assert admin.session_id is not None, "a caller by a session"
        session = await service.require_open(tx, admin.session_id, now=now)
        required = RequiredPermission(
            kind=KeyKind.ADMIN, permission=permission, survives_archive=False
        )
        if admin.person_name is None:
            known = await lookup.get_admin_caller_for_share(tx, tx.organization_id, admin.key_id)
        else:
            known = await self.known_of(tx, session, tx.organization_id)
        return _admin(session, known, required, now)

    async def acting_organizations(
        self, tx: Transaction, session: ConsoleSession, *, now: datetime
    ) -> list[OrganizationId]:
        """Return those of the session's organizations in which it can act, or soon again."""
        acting: list[OrganizationId] = []
        for organization_id in session.organization_ids:
            try:
                rules.working_admin(await self.known_of(tx, session, organization_id), now=now)
            except (InvalidKey, OrganizationMoved):
                continue
            except (OrganizationMoving, OrganizationSuspended):
                # For seconds, or until the operator resumes it: the API says so to the console.
                pass
            acting.append(organization_id)
        return acting

    async def known_of(
        self, tx: Transaction, session: ConsoleSession, organization_id: OrganizationId
    ) -> KnownKey | None:
        """Return the key or the person of a session in an organization, or None."""
        if organization_id not in session.organization_ids:
            return None
        if session.key_digest is not None:
            return await lookup.find_by_digest(tx, session.key_digest)
        held = session_rules.held_permissions(self.grants, session.groups, organization_id)
        if held is None:
            return None
        permissions = None if held.holds_all else held.permissions
        return await lookup.get_person(
            tx, organization_id, session.owner_id, permissions=permissions
        )


def _admin(
    session: ConsoleSession, known: KnownKey | None, required: RequiredPermission, now: datetime
) -> Admin:
    if known is None:
        raise SessionEnded
    caller = rules.authorize(known, required, now=now)
    assert isinstance(caller, Admin), "only Admin keys and people sign in"
    return replace(caller, session_id=session.id, person_name=session.person_name)
