"""The envelope of every failure, and which `type` each status has."""

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, Self

from msgspec import Meta, Struct

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.contract.error_codes import CODES
from tollhouse.contract.origins import GIVEN, adopted, given

POLICY_ERROR: Final = "policy_error"
CODES_MEMBER: Final = "x-tollhouse-codes"
"""Where the document lists the codes of each status; the list stays open to additions."""

_KNOWN_CODES = Meta(
    extra_json_schema={CODES_MEMBER: {str(status): list(codes) for status, codes in CODES.items()}}
)


class ErrorShape(StrEnum):
    """Which family of clients a route speaks to."""

    OPENAI = "openai"
    MESSAGES = "messages"


class UnsupportedOption(GatewayError):
    """The interface knows the option, and the model does not support it. Retrying does not help."""

    kind = Kind.NOT_IMPLEMENTED
    code = "unsupported_parameter"
    should_retry = False

    def __init__(self, param: str, model: str | None = None) -> None:
        super().__init__(self._text(param, model), param=param)

    def with_model(self, model: str) -> Self:
        """Name the model that the caller asked for, where the check did not know it."""
        assert self.param is not None
        self.message = self._text(self.param, model)
        return self

    def _text(self, param: str, model: str | None) -> str:
        return f"Unsupported parameter: '{param}'. {self._explanation(model)}"

    def _explanation(self, model: str | None) -> str:
        """Say what is not supported, and what the caller can do instead."""
        raise NotImplementedError


class SupportedNowhere(UnsupportedOption):
    """No model of the gateway supports the option, so another model does not help."""

    def __init__(
        self,
        param: str,
        *,
        feature: str = "it",
        instead: str = "Leave it out.",
        model: str | None = None,
    ) -> None:
        self._feature, self._instead = feature, instead
        super().__init__(param, model)

    def _explanation(self, model: str | None) -> str:
        if model is None:
            return f"No model of this gateway supports {self._feature}. {self._instead}"
        return (
            f"The model '{model}' does not support {self._feature}, and no other model of this "
            f"gateway does. {self._instead}"
        )


class InputNotCut(UnsupportedOption):
    """The input may not fit the model's context, and the gateway drops no part of it."""

    def __init__(self, model: str, *, context_length: int) -> None:
        self._context_length = context_length
        super().__init__("truncation", model)

    def _explanation(self, model: str | None) -> str:
        return (
            f"The input and its output bound may not fit the {self._context_length} tokens of the "
            f"model '{model}', and the gateway drops nothing of an input. Send 'disabled', a "
            "shorter 'input' or a smaller 'max_output_tokens', or choose a model with a larger "
            "'context_length'."
        )


class ModelLacksFeature(UnsupportedOption):
    """The model does not declare what the option needs. Another model may."""

    # `lack` says what the model does not do; `listed_in` is the field of the model object that
    # would list `feature`.
    def __init__(self, param: str, model: str, *, lack: str, feature: str, listed_in: str) -> None:
        self._lack, self._feature, self._listed_in = lack, feature, listed_in
        super().__init__(param, model)

    def _explanation(self, model: str | None) -> str:
        return (
            f"The model '{model}' {self._lack}. Leave it out, or choose a model that has "
            f"'{self._feature}' in '{self._listed_in}': `GET /v1/models` shows it."
        )


class RemoteMediaRefused(UnsupportedOption):
    """The request links to media, and the model's backend is not declared to fetch them safely."""

    def _explanation(self, model: str | None) -> str:
        owner = "the model" if model is None else f"the model '{model}'"
        return (
            f"It must carry the data itself: the backend of {owner} is not declared to fetch this "
            "kind of media. Send a data URL such as 'data:image/png;base64,...', or ask the "
            "operator to set 'fetches_images_safely' for a backend that fetches remote images and "
            "videos safely (http and https only)."
        )


class MediaTypeRefused(UnsupportedOption):
    """The media type of the data belongs into another kind of part, such as a video in an image."""

    def __init__(self, param: str, media_type: str, model: str | None = None) -> None:
        self._media_type = media_type
        super().__init__(param, model)

    def _explanation(self, model: str | None) -> str:
        owner = "No model" if model is None else f"The model '{model}'"
        verb = "takes" if model is None else "does not take"
        return (
            f"{owner} {verb} '{self._media_type}' here. Send each kind of media in its own part: "
            "images (except SVG) as an image, videos as a video, sound as audio, and everything "
            "else as a file."
        )


class ErrorBody(Struct, frozen=True, kw_only=True):
    """What failed, whose turn it is, and under which request ID it can be found."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("code", "message", "type")

    code: Annotated[str, given(**{CODES_MEMBER: "OQ-02"}), _KNOWN_CODES]
    message: str
    type: Annotated[
        str,
        Meta(description=f"Policy failures have `{POLICY_ERROR}`.", examples=[POLICY_ERROR]),
    ]
    param: str | None
    request_id: str
    doc_url: str | None


class Envelope(Struct, frozen=True, kw_only=True):
    """Body of every failure, except on Messages-shaped routes."""

    mark: ClassVar[Meta] = GIVEN

    error: ErrorBody


class MessagesEnvelope(Struct, frozen=True, kw_only=True):
    """Body of a failure on Messages-shaped routes."""

    mark: ClassVar[Meta] = GIVEN

    type: Literal["error"] = "error"
    error: ErrorBody
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
    """The `type` of a failure (OQ-01); all that the tables do not name are the caller's errors."""
    if is_policy_failure:
        return POLICY_ERROR
    return _TYPES[shape].get(kind, "invalid_request_error")
