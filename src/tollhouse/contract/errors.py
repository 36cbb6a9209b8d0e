"""The wire types of failures, and the errors about options that a model does not support."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, Self

from msgspec import Meta, Struct

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.contract.error_codes import CODES
from tollhouse.contract.origins import GIVEN, adopted, given

POLICY_ERROR: Final = "policy_error"
CODES_MEMBER: Final = "x-tollhouse-codes"
"""The member of the OpenAPI document that lists the codes of each status. Codes may be added."""

_KNOWN_CODES = Meta(
    extra_json_schema={CODES_MEMBER: {str(status): list(codes) for status, codes in CODES.items()}}
)


class ErrorShape(StrEnum):
    """The form in which a route reports failures."""

    OPENAI = "openai"
    MESSAGES = "messages"


DROPPING: Final = (
    "The operator can set 'drops_unsupported_tools = true' for the model, which leaves such a tool "
    "out of requests that can do without it."
)


class UnsupportedOption(GatewayError):
    """The interface knows the option, and the model does not support it. Retrying does not help."""

    kind = Kind.NOT_IMPLEMENTED
    code = "unsupported_parameter"
    should_retry = False
    template = "Unsupported parameter: '{self.param}'. {self.explanation}"
    param: str | None
    model: str | None = None

    @property
    def explanation(self) -> str:
        """What is not supported, and what the caller can do instead."""
        raise NotImplementedError

    def with_model(self, model: str) -> Self:
        """Add the name of the model to the message, where the check did not know it."""
        self.model = model
        self.message = self.template.format(self=self)
        return self


class SupportedNowhere(UnsupportedOption):
    """No model of the gateway supports the option, so another model does not help."""

    feature: str = "it"
    instead: str = "Leave it out."

    @property
    def explanation(self) -> str:
        """That no other model helps, and what the caller can do instead."""
        if self.model is None:
            return f"No model of this gateway supports {self.feature}. {self.instead}"
        return (
            f"The model '{self.model}' does not support {self.feature}, and no other model of this "
            f"gateway does. {self.instead}"
        )


class BackendLacksOption(UnsupportedOption):
    """The API of the model's backend cannot express the option."""

    @property
    def explanation(self) -> str:
        """That other models may have it."""
        return (
            f"The backend of the model '{self.model}' cannot be told this. Leave it out, or choose "
            "another model."
        )


class InputNotCut(UnsupportedOption):
    """The input may not fit the model's context, and the gateway drops no part of it."""

    template = (
        "Unsupported parameter: 'truncation'. The input and its output bound may not fit the "
        "{self.context_length} tokens of the model '{self.model}', and the gateway drops nothing "
        "of an input. Send 'disabled', a shorter 'input' or a smaller 'max_output_tokens', or "
        "choose a model with a larger 'context_length'."
    )
    param: str | None = "truncation"
    context_length: int


class ModelLacksFeature(UnsupportedOption):
    """The model does not declare what the option needs. Another model may."""

    template = (
        "Unsupported parameter: '{self.param}'. The model '{self.model}' {self.lack}. Leave it "
        "out, or choose a model that has '{self.feature}' in '{self.listed_in}': `GET /v1/models` "
        "shows it.{self.advice}"
    )
    # `lack` says what the model does not do; `listed_in` is the field of the model object that
    # would list `feature`.
    lack: str
    feature: str
    listed_in: str
    advice: str = ""


class RemoteMediaRefused(UnsupportedOption):
    """The request links to media, and the model's backend is not declared to fetch them safely."""

    @property
    def explanation(self) -> str:
        """Why the link is refused, and what to send instead."""
        owner = "the model" if self.model is None else f"the model '{self.model}'"
        return (
            f"It must carry the data itself: the backend of {owner} is not declared to fetch this "
            "kind of media. Send a data URL such as 'data:image/png;base64,...', or ask the "
            "operator to set 'fetches_images_safely' for a backend that fetches remote images and "
            "videos safely (http and https only)."
        )


class MediaTypeRefused(UnsupportedOption):
    """The media type of the data belongs into another kind of part, such as a video in an image."""

    media_type: str

    @property
    def explanation(self) -> str:
        """What is not taken here, and in which part it belongs."""
        takes = (
            "No model takes" if self.model is None else f"The model '{self.model}' does not take"
        )
        return (
            f"{takes} '{self.media_type}' here. Send each kind of media in its own part: "
            "images (except SVG) as an image, videos as a video, sound as audio, and everything "
            "else as a file."
        )


class ErrorBody(Struct, frozen=True, kw_only=True):
    """A failure: a `code` for programs, a `message` for people, and the request ID."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("code", "message", "type")

    code: Annotated[str, given(**{CODES_MEMBER: "OQ-02"}), _KNOWN_CODES]
    """The reason for programs. Codes may be added."""
    message: str
    """What happened and what to do, for people."""
    type: Annotated[
        str,
        Meta(description=f"Policy failures have `{POLICY_ERROR}`.", examples=[POLICY_ERROR]),
    ]
    param: str | None
    """The field or parameter at fault, or null."""
    request_id: str
    doc_url: str | None
    """A page about the code, or null."""


class Envelope(Struct, frozen=True, kw_only=True):
    """Body of every failure, except on Messages-shaped routes."""

    mark: ClassVar[Meta] = GIVEN

    error: ErrorBody
    """What failed."""


class MessagesEnvelope(Struct, frozen=True, kw_only=True):
    """Body of a failure on Messages-shaped routes."""

    mark: ClassVar[Meta] = GIVEN

    type: Literal["error"] = "error"
    error: ErrorBody
    """What failed."""
    request_id: Annotated[str, adopted("OQ-72")]


_OPENAI_TYPES = {
    Kind.UNCOVERED: "insufficient_quota",
    Kind.LIMITED: "rate_limit_error",
    Kind.UNEXPECTED: "server_error",
    Kind.BACKEND_FAILED: "server_error",
    Kind.UNAVAILABLE: "service_unavailable_error",
    Kind.DEADLINE: "server_error",
}
_MESSAGES_TYPES = {
    Kind.UNAUTHENTICATED: "authentication_error",
    Kind.UNCOVERED: "billing_error",
    Kind.DENIED: "permission_error",
    Kind.NOT_FOUND: "not_found_error",
    Kind.CONFLICT: "conflict_error",
    Kind.TOO_LARGE: "request_too_large",
    Kind.LIMITED: "rate_limit_error",
    Kind.UNEXPECTED: "api_error",
    Kind.BACKEND_FAILED: "api_error",
    Kind.UNAVAILABLE: "overloaded_error",
    Kind.DEADLINE: "timeout_error",
}
_TYPES = {ErrorShape.OPENAI: _OPENAI_TYPES, ErrorShape.MESSAGES: _MESSAGES_TYPES}


def error_type(kind: Kind, *, shape: ErrorShape, is_policy_failure: bool) -> str:
    """Return the `type` of a failure (OQ-01), by default `invalid_request_error`."""
    if is_policy_failure:
        return POLICY_ERROR
    return _TYPES[shape].get(kind, "invalid_request_error")
