"""Errors of requests that fail before an operation handles them."""

from tollhouse.base.errors import GatewayError, Kind, ServiceUnavailable


class MalformedRequest(GatewayError):
    """The request is not valid HTTP/1.1, or is ambiguous."""

    kind = Kind.INVALID
    code = "malformed_request"
    template = "{self.text}"

    def __init__(self, text: str = "The request is not well-formed HTTP/1.1.") -> None:
        super().__init__(text=text)


class HeadTooLarge(GatewayError):
    """The request line and the headers together are too long."""

    kind = Kind.HEADERS_TOO_LARGE
    code = "request_headers_too_large"
    template = (
        "The request line and headers exceed {self.bytes_max} bytes. Send fewer or shorter headers."
    )
    bytes_max: int


class HeadTimedOut(GatewayError):
    """The request line and the headers did not arrive in time."""

    kind = Kind.TIMED_OUT_READING
    code = "request_timeout"
    template = (
        "The request line and headers did not arrive within {self.seconds:g} seconds. Send them "
        "faster."
    )
    seconds: float


class UnknownUrl(GatewayError):
    """No operation has this path, or the operation is under `/manage/v1`."""

    kind = Kind.NOT_FOUND
    code = "unknown_url"
    template = "Unknown request URL. {self.advice}"

    def __init__(self, advice: str | None) -> None:
        super().__init__(advice=advice or "Check the path and the base URL.")


class OperationNotServed(UnknownUrl):
    """The URL is one of OpenAI's API whose operation the gateway does not have."""

    template = (
        "This gateway does not serve {self.operation}. It serves chat completions, responses, "
        "messages and models; call the provider itself for the rest."
    )
    operation: str

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(None)


class MethodNotAllowed(GatewayError):
    """The path has operations, but none with this method."""

    kind = Kind.METHOD_NOT_ALLOWED
    code = "method_not_allowed"
    template = "This URL accepts {self.allowed}."
    allowed: str

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the allowed methods, which RFC 9110 requires."""
        return (("allow", self.allowed),)


class UnsupportedMediaType(GatewayError):
    """The body is not JSON."""

    kind = Kind.UNSUPPORTED_MEDIA
    code = "unsupported_media_type"
    template = "The body must be JSON in UTF-8. Send the header 'Content-Type: application/json'."

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return what the gateway accepts."""
        return (("accept", "application/json"),)


class UnsupportedContentEncoding(GatewayError):
    """The body is compressed. The gateway must know the size of a body while reading it."""

    kind = Kind.UNSUPPORTED_MEDIA
    code = "unsupported_media_type"
    template = "The body must not be compressed. Send it without 'Content-Encoding'."

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return what the gateway accepts."""
        return (("accept-encoding", "identity"),)


class BodyTooLarge(GatewayError):
    """The body is larger than the gateway accepts."""

    kind = Kind.TOO_LARGE
    code = "request_too_large"
    template = (
        "The body exceeds {self.bytes_max} bytes. Send less, such as fewer messages or smaller "
        "media."
    )
    bytes_max: int


class WorkerOverloaded(ServiceUnavailable):
    """The worker has more requests than it can handle. Nothing was done for this one."""

    code = "server_is_overloaded"
    template = (
        "The gateway has more requests than it can handle now. "
        "Try again in {self.retry_after_seconds} s."
    )


class BodyQuotaExceeded(ServiceUnavailable):
    """The request bodies of all organizations use all memory that this worker has for them."""

    code = "body_quota_exceeded"
    template = (
        "This worker has no memory left for further request bodies. "
        "Try again in {self.retry_after_seconds} s."
    )


class OrganizationBodyQuotaExceeded(BodyQuotaExceeded):
    """The organization's requests in progress use its share of the memory for request bodies."""

    template = (
        "The large requests that your organization has in flight use its share of the memory for "
        "request bodies. Send fewer of them at once. Try again in {self.retry_after_seconds} s."
    )


class TooManyBodies(GatewayError):
    """The key or the organization sends too many large request bodies at once."""

    kind = Kind.LIMITED
    code = "too_many_bodies"
    retry_after_seconds = 1
    template = (
        "This {self.sender} already sends {self.bodies_max} large request bodies at once. Try "
        "again in {self.retry_after_seconds} s, or send fewer of them at once."
    )
    sender: str
    bodies_max: int


class BodyTimedOut(GatewayError):
    """The body did not arrive in time. The connection is closed."""

    kind = Kind.TIMED_OUT_READING
    code = "request_timeout"
    template = "The body did not arrive in time. Send it faster, or send less."


class Disconnected(Exception):
    """The caller disconnected before the request was complete."""
