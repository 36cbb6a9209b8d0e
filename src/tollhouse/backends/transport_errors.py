"""What can happen on the way to an upstream; says nothing of where, since callers may be told."""


class TransportError(Exception):
    """No answer, or not all of it."""


class NotConnected(TransportError):
    """No connection came about: not a byte of the request was sent."""


class ConnectionBroken(TransportError):
    """The connection ended before the answer did."""


class NotHttp(TransportError):
    """What came back cannot be read as HTTP."""


class BodyTooLarge(TransportError):
    """The answer is larger than the caller would take."""


class TookTooLong(TransportError):
    """Whoever waited for the answer gave it up."""
