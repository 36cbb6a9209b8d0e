"""Encodes answers in the two forms of engines: one JSON document, or records of a stream."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from tests.upstream.answers import Run, ScriptedAnswer, total_usage, usage
from tollhouse.contract.bounds import FreeObject

ID: Final = "chatcmpl-test"
CREATED: Final = 1_700_000_000
FINGERPRINT: Final = "fp_test"
LOGPROB: Final = -0.25
DONE: Final = b"[DONE]"
REMEMBERED_TOKENS_MAX: Final = 1_024


def completion(answer: ScriptedAnswer) -> bytes:
    """Return the whole answer as JSON."""
    body = _body("chat.completion", answer)
    body["choices"] = [_choice(answer, index) for index in range(answer.choices)]
    body["usage"] = total_usage(answer)
    if body["usage"] is None:
        del body["usage"]
    if answer.asked.prompt_logprobs is not None:
        body["prompt_logprobs"] = _prompt_logprobs(answer)
    return msgspec.json.encode(body)


def records(answer: ScriptedAnswer) -> Iterator[bytes]:
    """Yield the data of each event. The error of a script is not among them."""
    order = list(range(answer.choices))
    if answer.script.choice_order == "descending":
        order.reverse()
    ends_with_piece = answer.script.ends_with_last_piece
    for piece, is_last in _marked(_pieces(answer)):
        finish_reason = answer.finish_reason if is_last and ends_with_piece else None
        for index in order:
            yield _record(answer, piece, index, finish_reason)
        if is_last and not ends_with_piece:
            end = replace(piece, delta={}, logprobs=None)
            for index in order:
                yield _record(answer, end, index, answer.finish_reason)
    if answer.asked.includes_usage and not ends_with_piece:
        yield from _usage_record(answer)
    if answer.script.done:
        yield DONE


def _usage_record(answer: ScriptedAnswer) -> Iterator[bytes]:
    if (last := total_usage(answer)) is not None:
        body = _body("chat.completion.chunk", answer)
        yield msgspec.json.encode(body | {"choices": [], "usage": last})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """What a record adds to every choice, and the tokens of each choice up to it."""

    delta: FreeObject
    logprobs: FreeObject | None = None
    tokens: int
    reasoning_tokens: int


def _pieces(answer: ScriptedAnswer) -> Iterator[_Piece]:
    opening: FreeObject = {"role": "assistant", "content": ""}
    if answer.script.padding_bytes:
        opening["padding"] = "x" * answer.script.padding_bytes
    tokens = reasoning_tokens = call_index = 0
    yield _Piece(delta=opening, tokens=0, reasoning_tokens=0)
    for run in answer.runs:
        if run.name:
            call = _call_delta(answer, run, call_index, None)
            yield _Piece(delta=call, tokens=tokens, reasoning_tokens=reasoning_tokens)
        for token in run.tokens:
            tokens += 1
            reasoning_tokens += run.kind == "reasoning"
            yield _Piece(
                delta=_delta(answer, run, call_index, token),
                logprobs=_logprobs(answer, [token]),
                tokens=tokens,
                reasoning_tokens=reasoning_tokens,
            )
        call_index += run.kind == "tool_call"
    if answer.annotations:
        delta: FreeObject = {"annotations": answer.annotations}
        yield _Piece(delta=delta, tokens=tokens, reasoning_tokens=reasoning_tokens)


def _marked(pieces: Iterator[_Piece]) -> Iterator[tuple[_Piece, bool]]:
    """Yield each piece, and whether it is the last one."""
    piece = next(pieces)
    for following in pieces:
        yield piece, False
        piece = following
    yield piece, True


def _delta(answer: ScriptedAnswer, run: Run, call_index: int, token: str) -> FreeObject:
    match run.kind:
        case "reasoning":
            return {answer.script.reasoning_name: token}
        case "tool_call" | "function_call":
            return _call_delta(answer, run, call_index, token)
        case kind:
            return {kind: token}


def _call_delta(answer: ScriptedAnswer, run: Run, index: int, token: str | None) -> FreeObject:
    """Return the delta of a call. ID, type and name come once, before the arguments."""
    function = {"name": run.name, "arguments": ""} if token is None else {"arguments": token}
    if run.kind == "function_call":
        return {"function_call": function}
    call: FreeObject = {"index": index, "function": function}
    if token is None:
        call |= {"id": _call_id(answer, index), "type": "function", **run.extra}
    return {"tool_calls": [call]}


def _record(answer: ScriptedAnswer, piece: _Piece, index: int, finish_reason: str | None) -> bytes:
    body = _body("chat.completion.chunk", answer)
    body["choices"] = [
        {
            "index": index,
            "delta": piece.delta,
            "logprobs": piece.logprobs,
            "finish_reason": finish_reason,
        }
    ]
    asked = answer.asked
    ends_here = finish_reason is not None and answer.script.ends_with_last_piece
    if asked.includes_usage_always or (asked.includes_usage and ends_here):
        # As in vLLM, this counts one choice alone.
        body["usage"] = usage(
            answer, completion_tokens=piece.tokens, reasoning_tokens=piece.reasoning_tokens
        )
    return msgspec.json.encode(body)


def _choice(answer: ScriptedAnswer, index: int) -> FreeObject:
    message: FreeObject = {"role": "assistant", "content": None, "refusal": None}
    calls: list[FreeObject] = []
    for run in answer.runs:
        function = {"name": run.name, "arguments": run.text}
        match run.kind:
            case "reasoning":
                message[answer.script.reasoning_name] = run.text
            case "tool_call":
                call_id = _call_id(answer, len(calls))
                called = {"id": call_id, "type": "function", "function": function}
                calls.append(called | run.extra)
            case "function_call":
                message["function_call"] = function
            case kind:
                message[kind] = run.text
    if calls:
        message["tool_calls"] = calls
    if answer.annotations:
        message["annotations"] = answer.annotations
    tokens = [token for run in answer.runs for token in run.tokens]
    return {
        "index": index,
        "message": message,
        "logprobs": _logprobs(answer, tokens),
        "finish_reason": answer.finish_reason,
    }


def _body(kind: str, answer: ScriptedAnswer) -> FreeObject:
    return {
        "id": ID,
        "object": kind,
        "created": CREATED,
        "model": answer.asked.model,
        "system_fingerprint": FINGERPRINT,
    }


def _logprobs(answer: ScriptedAnswer, tokens: list[str]) -> FreeObject | None:
    if not answer.asked.logprobs:
        return None
    count = answer.asked.top_logprobs or 0
    return {"content": [_likely(token, count) for token in tokens], "refusal": None}


@lru_cache(REMEMBERED_TOKENS_MAX)
def _likely(token: str, count: int) -> msgspec.Raw:
    """Return a token with so many alternatives, encoded and cached: answers repeat their words."""
    guesses = [_token(token + "?" * i, LOGPROB - i) for i in range(count)]
    return msgspec.Raw(msgspec.json.encode(_token(token, LOGPROB) | {"top_logprobs": guesses}))


def _token(token: str, logprob: float) -> FreeObject:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _prompt_logprobs(answer: ScriptedAnswer) -> list[FreeObject | None]:
    """Return the logprobs of the prompt in vLLM's form: None for the first token."""
    words = " ".join(message.text for message in answer.asked.messages).split()
    known: list[Any] = [
        {str(number): {"logprob": LOGPROB, "rank": 1, "decoded_token": word}}
        for number, word in enumerate(words)
    ]
    return [None, *known[1:]]


def _call_id(answer: ScriptedAnswer, index: int) -> str:
    """Return an ID that no earlier call of the conversation has."""
    earlier = sum(len(message.tool_calls or ()) for message in answer.asked.messages)
    return f"call_{earlier + index}"
