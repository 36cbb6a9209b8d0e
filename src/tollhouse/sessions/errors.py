"""Errors of sessions."""

from tollhouse.base.errors import GatewayError, Kind


class SessionEnded(GatewayError):
    """The token of a session is malformed or expired, or its session has ended."""

    kind = Kind.UNAUTHENTICATED
    code = "session_ended"
    template = (
        "The console session has ended, or its token has expired. Reload the console, and sign in "
        "again if it asks for it. Programs send an Admin API key instead."
    )

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the challenge of RFC 6750."""
        return (("www-authenticate", 'Bearer error="invalid_token"'),)


class SignInReplayed(Exception):
    """The sign-in has made a session already."""
