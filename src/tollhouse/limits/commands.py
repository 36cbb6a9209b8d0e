"""Commands to Redis in its own protocol (RESP2), prepared once per key.

What changes from request to request has a fixed width, so that a template is filled in by one
formatting operation.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from redis.crc import key_slot

from tollhouse.limits import rules, scripts
from tollhouse.limits.types import (
    BucketCost,
    ConcurrencySlot,
    Corrections,
    LimitRequest,
    LimitSet,
)

COST_WIDTH: Final = 8
"""No cost is above one minute in microseconds."""
MEMBER_WIDTH: Final = 36
PING: Final = "*1\r\n$4\r\nPING\r\n"
_COST: Final = f"${COST_WIDTH}\r\n%0{COST_WIDTH}d\r\n"
_CORRECTION: Final = f"${COST_WIDTH + 1}\r\n%+0{COST_WIDTH + 1}d\r\n"
_MEMBER: Final = f"${MEMBER_WIDTH}\r\n%{MEMBER_WIDTH}s\r\n"


@dataclass(frozen=True, slots=True)
class RedisScript:
    """A Lua script, and the digest by which the server runs it once it is loaded."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "digest", digest)


COUNT: Final = RedisScript(scripts.SERVER_CLOCK + scripts.COUNT)
RENEW: Final = RedisScript(scripts.SERVER_CLOCK + scripts.RENEW)
LEAVE: Final = RedisScript(scripts.SERVER_CLOCK + scripts.LEAVE)
PROBE: Final = RedisScript(scripts.PROBE)
ALL_SCRIPTS: Final = (COUNT, RENEW, LEAVE, PROBE)


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitCommands:
    """The templates of one key: `count_command` and `leave_command` fill them in.

    All Redis keys in them are in one hash slot, because they share the part in braces.
    """

    hash_slot: int
    enter: str
    enter_with_tokens: str
    take_tokens: str
    correct: str
    leave: str
    leave_and_correct: str


def limit_commands(limit_set: LimitSet, lease_ms: int) -> LimitCommands:
    """Return the commands for the buckets and slots of one key."""
    entry, slots = limit_set.costs, limit_set.slots
    tokens = rules.token_costs(limit_set.token_limits, 0)
    (hash_slot,) = {key_slot(each.key.encode()) for each in (*entry, *slots, *tokens)}
    return LimitCommands(
        hash_slot=hash_slot,
        enter=count_template(entry, slots, (), lease_ms),
        enter_with_tokens=count_template(entry, slots, tokens, lease_ms),
        take_tokens=count_template(tokens, (), (), lease_ms),
        correct=leave_template(tokens, ()),
        leave=leave_template((), slots),
        leave_and_correct=leave_template(tokens, slots),
    )


def count_template(
    costs: Sequence[BucketCost],
    slots: Sequence[ConcurrencySlot],
    expected: Sequence[BucketCost],
    lease_ms: int,
) -> str:
    """Return a call of `scripts.COUNT`, in which all costs and the member are left open."""
    arguments = [_word(len(costs)), _word(len(slots))]
    for cost in costs:
        arguments += (_word(cost.full_us), _COST)
    arguments += [_word(slot.limit) for slot in slots]
    for cost in expected:
        arguments += (_word(cost.full_us), _COST)
    arguments += (_word(lease_ms), _MEMBER)
    return _call(COUNT, [each.key for each in (*costs, *slots, *expected)], arguments)


def leave_template(costs: Sequence[BucketCost], slots: Sequence[ConcurrencySlot]) -> str:
    """Return a call of `scripts.LEAVE`, in which all corrections and the member are left open."""
    arguments = [_word(len(costs))]
    for cost in costs:
        arguments += (_CORRECTION, _word(cost.full_us))
    arguments.append(_MEMBER)
    return _call(LEAVE, [each.key for each in (*costs, *slots)], arguments)


def count_command(template: str, request: LimitRequest) -> str:
    """Return the command that counts a request."""
    values: list[int | str] = [cost.cost_us for cost in request.costs + request.expected]
    values.append(request.member)
    return template % tuple(values)


def leave_command(template: str, corrections: Corrections, member: str) -> str:
    """Return the command that corrects buckets and releases the slots of `member`."""
    values: list[int | str] = [more_us for _, more_us in corrections]
    values.append(member)
    return template % tuple(values)


def encoded(script: RedisScript, keys: Sequence[str], arguments: Iterable[str | int]) -> str:
    """Return the command that runs a script."""
    return _call(script, keys, [_word(argument) for argument in arguments])


def load_command(script: RedisScript) -> str:
    """Return the command that loads a script."""
    return words("SCRIPT", "LOAD", script.text)


def words(*given: str | int) -> str:
    """Return a command of words, which need not be ASCII."""
    texts = [str(word) for word in given]
    return f"*{len(texts)}\r\n" + "".join(f"${len(t.encode())}\r\n{t}\r\n" for t in texts)


def _call(script: RedisScript, keys: Sequence[str], arguments: Sequence[str]) -> str:
    named = [_word(word) for word in ("EVALSHA", script.digest, len(keys), *keys)]
    return f"*{len(named) + len(arguments)}\r\n{''.join(named)}{''.join(arguments)}"


def _word(word: str | int) -> str:
    text = str(word)
    assert text.isascii(), "the protocol counts bytes, not characters"
    return f"${len(text)}\r\n{text}\r\n"
