"""Counting tokens: the checks of the two protocol headers of Messages, and the handlers."""

from dataclasses import dataclass

import msgspec

from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.head import Head
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import messages as wire
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.contract.message_request import ROLES as MESSAGE_ROLES
from tollhouse.contract.message_request import check_edits
from tollhouse.inference.messages.token_counter import TokenCounter
from tollhouse.keys.types import Customer

VERSIONS = ("2023-06-01", "2026-10-21")
"""The versions that SDKs send. A request without a version counts as the first (OQ-68)."""
ALWAYS_ACCEPTED_FLAG = "token-counting-2024-11-01"
"""The beta method of the SDKs appends this flag, sometimes twice (OQ-69)."""
BETA_LENGTH_MAX = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCountHandlers:
    """Handlers that count tokens."""

    counter: TokenCounter

    async def count(
        self, call: OperationCall[Customer, wire.CountTokens, object]
    ) -> OperationAnswer:
        """POST /v1/messages/count_tokens

        Reserves no credit and evaluates no policy, because nothing is generated. The bytes that an
        organization may have counted in a minute are bounded.
        """
        check_version(call.head)
        flags = beta_flags(call.head)
        return await self._answer(call, call.body, roles=wire.ROLES, flags=flags)

    async def count_message(
        self, call: OperationCall[Customer, wire.CountTokens, object]
    ) -> OperationAnswer:
        """POST /compat/anthropic/v1/messages/count_tokens

        Beside what token counting takes: system messages, edits of earlier thinking, any beta flag.
        """
        check_messages_head(call.head)
        check_edits(call.body.context_management)
        body = msgspec.structs.replace(call.body, context_management=None)
        return await self._answer(call, body, roles=MESSAGE_ROLES, flags=frozenset())

    async def _answer(
        self,
        call: OperationCall[Customer, wire.CountTokens, object],
        body: wire.CountTokens,
        *,
        roles: tuple[str, ...],
        flags: frozenset[str],
    ) -> OperationAnswer:
        try:
            wire.check(body, roles)
            counted = await self.counter.count(
                call.caller, body, size_bytes=call.body_bytes, flags=flags, charge=call.charge
            )
        except UnsupportedOption as refusal:
            raise refusal.with_model(body.model) from None
        return OperationAnswer(
            body=wire.TokenCount(input_tokens=counted.tokens),
            headers=((wire.ESTIMATED_HEADER, "true"),) if counted.is_estimated else (),
        )


def check_messages_head(head: Head) -> None:
    """Raise for an unknown version, and for beta flags that are too long.

    Flags themselves are not refused: what they allow is checked where it is used (OQ-225).
    """
    check_version(head)
    beta_flags(head)


def check_version(head: Head) -> None:
    """Raise `InvalidRequest` for an unknown version, and for more than one."""
    values = head.values(wire.VERSION_HEADER.encode())
    if len(values) > 1 or (values and values[0].decode("latin-1") not in VERSIONS):
        known = " or ".join(VERSIONS)
        message = f"Invalid '{wire.VERSION_HEADER}': send it once, as {known}."
        raise InvalidRequest("invalid_value", message, param=wire.VERSION_HEADER)


def beta_flags(head: Head) -> frozenset[str]:
    """Return the beta flags that the model must support, without repeats."""
    text = ",".join(value.decode("latin-1") for value in head.values(wire.BETA_HEADER.encode()))
    if len(text) > BETA_LENGTH_MAX:
        message = f"Invalid '{wire.BETA_HEADER}': at most {BETA_LENGTH_MAX} characters."
        raise InvalidRequest("string_above_max_length", message, param=wire.BETA_HEADER)
    flags = {flag.strip() for flag in text.split(",")} - {"", ALWAYS_ACCEPTED_FLAG}
    return frozenset(flags)
