"""The settings of people's sign-in at an OpenID provider."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from tollhouse.base.ids import OrganizationId, parse_uuid
from tollhouse.base.permissions import ADMIN_PERMISSIONS
from tollhouse.settings.section import InvalidSettings, Section

GRANTS_MAX = 1_000
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ISSUER = re.compile(r"https?://[!-~]+", re.ASCII)

ClaimName = Annotated[str, Meta(min_length=1, max_length=200)]


class GroupGrantSettings(Section, frozen=True, kw_only=True):
    """What members of a group of the provider may do in one organization."""

    group: Annotated[str, Meta(min_length=1, max_length=500)]
    organization: str
    permissions: Literal["all"] | Annotated[list[str], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if parse_uuid(self.organization) is None:
            message = (
                f"oidc.grants: {self.organization!r} is not the ID of an organization. "
                "`tollhouse org list` shows them."
            )
            raise InvalidSettings(message)
        unknown = [name for name in self.permissions if name not in ADMIN_PERMISSIONS]
        if self.permissions != "all" and unknown:
            message = (
                f"oidc.grants: {unknown[0]!r} is not a permission of Admin keys. "
                f"These are: {', '.join(sorted(ADMIN_PERMISSIONS))}."
            )
            raise InvalidSettings(message)

    @property
    def organization_id(self) -> OrganizationId:
        """The organization in which the group may act."""
        found = parse_uuid(self.organization)
        assert found is not None, "checked above"
        return OrganizationId(found)


class OidcSettings(Section, frozen=True, kw_only=True):
    """Sign-in to the console at an OpenID provider. Without an issuer there is none.

    A client without a secret is a public one. `grants` say what groups may do; the groups of a
    person are in the claim `groups_claim`, a name or a path with dots. The audit log calls people
    by `name_claim`.
    """

    issuer: str | None = None
    client_id: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    client_secret: Annotated[str, Meta(min_length=1, max_length=2_000)] | None = None
    scopes: Annotated[tuple[str, ...], Meta(max_length=20)] = ("openid", "email", "profile")
    groups_claim: ClaimName = "groups"
    name_claim: ClaimName = "email"
    grants: Annotated[tuple[GroupGrantSettings, ...], Meta(max_length=GRANTS_MAX)] = ()

    def __post_init__(self) -> None:
        if self.issuer is None:
            return
        parts = urlsplit(self.issuer)
        is_plain = parts.scheme == "http" and parts.hostname not in _LOOPBACK
        if _ISSUER.fullmatch(self.issuer) is None or is_plain or parts.query or parts.fragment:
            message = (
                "oidc.issuer: not of the form https://HOST or https://HOST/PATH, as the provider "
                "writes it in its own configuration. http is accepted for this machine only."
            )
            raise InvalidSettings(message)
        if self.client_id is None or not self.grants or "openid" not in self.scopes:
            message = (
                "oidc: set client_id, at least one of grants, and keep 'openid' in scopes. Without "
                "grants, people who sign in may do nothing."
            )
            raise InvalidSettings(message)


def check_public_url(oidc: OidcSettings, public_url: str | None) -> None:
    """Raise unless the provider can lead people back to the console over TLS."""
    if oidc.issuer is None:
        return
    parts = urlsplit(public_url or "")
    is_protected = parts.scheme == "https" or parts.hostname in _LOOPBACK
    if not is_protected or parts.path.strip("/"):
        message = (
            "oidc.issuer: set server.public_url too, to https://HOST without a path. The provider "
            "leads people back to its /console/session/callback, which must be registered there. "
            "http is accepted for this machine only."
        )
        raise InvalidSettings(message)
