"""What is wrong with a request before anything is known of its meaning."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable


class MalformedRequest(GatewayError):
    """The bytes are not HTTP/1.1, or HTTP in a form that two readers may read differently."""

    kind = Kind.INVALID
    code = "malformed_request"

    def __init__(self, message: str = "The request is not well-formed HTTP/1.1.") -> None:
        super().__init__(message)


class HeadTooLarge(GatewayError):
    """The request line and the headers together exceed the gateway's bound."""

    kind = Kind.HEADERS_TOO_LARGE
    code = "request_headers_too_large"

    def __init__(self, *, bytes_max: int) -> None:
        super().__init__(
            f"The request line and headers exceed {bytes_max} bytes. Send fewer or shorter headers."
        )


class HeadTimedOut(GatewayError):
    """The request line and the headers did not arrive in time."""

    kind = Kind.TIMED_OUT_READING
    code = "request_timeout"

    def __init__(self, *, seconds: float) -> None:
        super().__init__(
            f"The request line and headers did not arrive within {seconds:g} seconds. Send them "
            "faster."
        )


class UnknownUrl(GatewayError):
    """No operation has this path, or the operation is under `/manage/v1`."""

    kind = Kind.NOT_FOUND
    code = "unknown_url"

    def __init__(self, advice: str | None) -> None:
        super().__init__(f"Unknown request URL. {advice or 'Check the path and the base URL.'}")


class MethodNotAllowed(GatewayError):
    """The path is known, the method is not."""

    kind = Kind.METHOD_NOT_ALLOWED
    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"This URL accepts {allowed}.")
        self._allowed = allowed

    def headers(self) -> tuple[tuple[str, str], ...]:
        """RFC 9110 demands the list."""
        return (("allow", self._allowed),)


class UnsupportedMediaType(GatewayError):
    """Bodies are JSON."""

    kind = Kind.UNSUPPORTED_MEDIA
    code = "unsupported_media_type"

    def __init__(self) -> None:
        super().__init__(
            "The body must be JSON in UTF-8. Send the header 'Content-Type: application/json'."
        )

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What would be accepted."""
        return (("accept", "application/json"),)


class UnsupportedContentEncoding(GatewayError):
    """Bodies are not compressed: their size must be known as they are read."""

    kind = Kind.UNSUPPORTED_MEDIA
    code = "unsupported_media_type"

    def __init__(self) -> None:
        super().__init__("The body must not be compressed. Send it without 'Content-Encoding'.")

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What would be accepted."""
        return (("accept-encoding", "identity"),)


class BodyTooLarge(GatewayError):
    """More bytes than one body may have, declared or counted."""

    kind = Kind.TOO_LARGE
    code = "request_too_large"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"The body exceeds {bytes_max} bytes. Send less, such as fewer messages or smaller "
            "media."
        )


class BodyQuotaExceeded(ServiceUnavailable):
    """The bodies of all organizations use as much memory as this worker has for them."""

    code = "body_quota_exceeded"

    def __init__(
        self, message: str = "This worker has no memory left for further request bodies."
    ) -> None:
        super().__init__(f"{message} Try again in {self.retry_after_seconds} s.")


class OrganizationBodyQuotaExceeded(BodyQuotaExceeded):
    """The organization's requests in flight use its share of the memory for bodies."""

    def __init__(self) -> None:
        super().__init__(
            "The large requests that your organization has in flight use its share of the memory"
            " for request bodies. Send fewer of them at once."
        )


class TooManyBodies(GatewayError):
    """A key or an organization sends more large bodies at once than a worker reads for it."""

    kind = Kind.LIMITED
    code = "too_many_bodies"
    retry_after_seconds = 1

    def __init__(self, sender: str, bodies_max: int) -> None:
        super().__init__(
            f"This {sender} already sends {bodies_max} large request bodies at once."
            f" Try again in {self.retry_after_seconds} s, or send fewer of them at once."
        )


class BodyTimedOut(GatewayError):
    """The body did not arrive in time; the connection is closed."""

    kind = Kind.TIMED_OUT_READING
    code = "request_timeout"

    def __init__(self) -> None:
        super().__init__("The body did not arrive in time. Send it faster, or send less.")


class Disconnected(Exception):
    """The caller left before the request was complete: there is nobody to answer."""
