"""POST /v1/messages/count_tokens: what its two protocol headers may say, and the count."""

from tollhouse.api.call import Answer, Call
from tollhouse.api.head import Head
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import messages as wire
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.keys.types import Customer

VERSIONS = ("2023-06-01", "2026-10-21")
"""What the SDKs of that family send; nothing counts as the first (OQ-68)."""
ALWAYS_ACCEPTED_FLAG = "token-counting-2024-11-01"
"""The SDKs' beta method appends it, sometimes twice (OQ-69)."""
BETA_LENGTH_MAX = 512


async def count(call: Call[Customer, wire.CountTokens, object]) -> Answer:
    """Nothing is generated, so nothing is reserved or judged; bytes per minute are bounded."""
    try:
        return Answer(body=wire.TokenCount(input_tokens=await _tokens(call)))
    except UnsupportedOption as refusal:
        raise refusal.with_model(call.body.model) from None


async def _tokens(call: Call[Customer, wire.CountTokens, object]) -> int:
    wire.check(call.body)
    check_version(call.head)
    return await call.house.token_counter.count(
        call.caller,
        call.body,
        size_bytes=call.body_bytes,
        flags=beta_flags(call.head),
        charge=call.charge,
    )


def check_version(head: Head) -> None:
    """A version that is known, at most once: a proxy that joins two makes an unknown one."""
    for value in head.values(wire.VERSION_HEADER.encode()):
        if value.decode("latin-1") not in VERSIONS:
            known = ", ".join(VERSIONS)
            message = f"Invalid '{wire.VERSION_HEADER}': expected one of {known}."
            raise InvalidRequest("invalid_value", message, param=wire.VERSION_HEADER)


def beta_flags(head: Head) -> frozenset[str]:
    """Flags that the model must know, without repeats."""
    text = ",".join(value.decode("latin-1") for value in head.values(wire.BETA_HEADER.encode()))
    if len(text) > BETA_LENGTH_MAX:
        message = f"Invalid '{wire.BETA_HEADER}': at most {BETA_LENGTH_MAX} characters."
        raise InvalidRequest("string_above_max_length", message, param=wire.BETA_HEADER)
    flags = {flag.strip() for flag in text.split(",")} - {"", ALWAYS_ACCEPTED_FLAG}
    return frozenset(flags)
