"""A chat request whose assistant messages may have members that SDKs copy from an answer (OQ-237).

The specification rejects them, so this type is decoded only where the operator sets
`compatibility.accepts_own_answers`.
"""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.faults import UnknownMessageMember

COPIED: Final = ("refusal", "annotations", "audio", "parsed")


class OwnAnswer(ChatMessage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message that may be an earlier answer. Only `refusal` tells a backend something new."""

    refusal: str | UnsetType | None = UNSET
    annotations: list[FreeObject] | UnsetType | None = UNSET
    audio: FreeObject | UnsetType | None = UNSET
    parsed: Any = UNSET

    @property
    def copied(self) -> list[str]:
        """The members that were sent and that a message of the specification does not have."""
        return [name for name in COPIED if getattr(self, name) is not UNSET]


class ChatRequestWithOwnAnswers(ChatRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /v1/chat/completions where the gateway takes its own answers back."""

    messages: Annotated[list[OwnAnswer], Meta(min_length=1)]  # pyright: ignore[reportIncompatibleVariableOverride]


def check_own_answers(request: ChatRequestWithOwnAnswers) -> None:
    """Raise `UnknownMessageMember` for copied members of anyone but the assistant, and for audio.

    Audio of an answer refers to something stored, and nothing is stored.
    """
    for position, message in enumerate(request.messages):
        for name in message.copied:
            if message.role != "assistant" or (name == "audio" and message.audio):
                raise UnknownMessageMember(f"messages[{position}].{name}", "")
