"""Answers in the two forms that engines have: one JSON document, or the records of a stream."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from tollhouse.contract.bounds import FreeObject
from tollhouse.testing.answers import Answer, Run, total_usage, usage

ID: Final = "chatcmpl-test"
CREATED: Final = 1_700_000_000
FINGERPRINT: Final = "fp_test"
LOGPROB: Final = -0.25
DONE: Final = b"[DONE]"
REMEMBERED_TOKENS_MAX: Final = 1_024


def completion(answer: Answer) -> bytes:
    """The whole answer."""
    body = _body("chat.completion", answer)
    body["choices"] = [_choice(answer, index) for index in range(answer.choices)]
    body["usage"] = total_usage(answer)
    if body["usage"] is None:
        del body["usage"]
    if answer.asked.prompt_logprobs is not None:
        body["prompt_logprobs"] = _prompt_logprobs(answer)
    return msgspec.json.encode(body)


def records(answer: Answer) -> Iterator[bytes]:
    """What stands behind `data:`, one after the other; the error of the script is no part of it."""
    order = list(range(answer.choices))
    if answer.script.choice_order == "descending":
        order.reverse()
    sent = _Sent()
    for delta, logprobs in _deltas(answer, sent):
        for index in order:
            yield _record(answer, sent, index, delta, logprobs, None)
    for index in order:
        yield _record(answer, sent, index, {}, None, answer.finish_reason)
    if answer.asked.includes_usage and (last := total_usage(answer)) is not None:
        body = _body("chat.completion.chunk", answer)
        yield msgspec.json.encode(body | {"choices": [], "usage": last})
    if answer.script.done:
        yield DONE


class _Sent:
    """How far every choice has come."""

    tokens = 0
    reasoning_tokens = 0


def _deltas(answer: Answer, sent: _Sent) -> Iterator[tuple[FreeObject, FreeObject | None]]:
    opening: FreeObject = {"role": "assistant", "content": ""}
    if answer.script.padding_bytes:
        opening["padding"] = "x" * answer.script.padding_bytes
    yield opening, None
    call_index = 0
    for run in answer.runs:
        if run.name:
            yield _call_delta(run, call_index, None), None
        for token in run.tokens:
            sent.tokens += 1
            sent.reasoning_tokens += run.kind == "reasoning"
            yield _delta(answer, run, call_index, token), _logprobs(answer, [token])
        call_index += run.kind == "tool_call"
    if answer.annotations:
        yield {"annotations": answer.annotations}, None


def _delta(answer: Answer, run: Run, call_index: int, token: str) -> FreeObject:
    match run.kind:
        case "reasoning":
            return {answer.script.reasoning_name: token}
        case "tool_call" | "function_call":
            return _call_delta(run, call_index, token)
        case kind:
            return {kind: token}


def _call_delta(run: Run, index: int, token: str | None) -> FreeObject:
    """ID, type and name come once, before the first piece of the arguments."""
    function = {"name": run.name, "arguments": ""} if token is None else {"arguments": token}
    if run.kind == "function_call":
        return {"function_call": function}
    call: FreeObject = {"index": index, "function": function}
    if token is None:
        call |= {"id": _call_id(index), "type": "function"}
    return {"tool_calls": [call]}


def _record(
    answer: Answer,
    sent: _Sent,
    index: int,
    delta: FreeObject,
    logprobs: FreeObject | None,
    finish_reason: str | None,
) -> bytes:
    body = _body("chat.completion.chunk", answer)
    body["choices"] = [
        {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
    ]
    if answer.asked.includes_usage_always:
        # Of this choice alone: so it is in vLLM.
        body["usage"] = usage(
            answer, completion_tokens=sent.tokens, reasoning_tokens=sent.reasoning_tokens
        )
    return msgspec.json.encode(body)


def _choice(answer: Answer, index: int) -> FreeObject:
    message: FreeObject = {"role": "assistant", "content": None, "refusal": None}
    calls: list[FreeObject] = []
    for run in answer.runs:
        function = {"name": run.name, "arguments": run.text}
        match run.kind:
            case "reasoning":
                message[answer.script.reasoning_name] = run.text
            case "tool_call":
                calls.append({"id": _call_id(len(calls)), "type": "function", "function": function})
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


def _body(kind: str, answer: Answer) -> FreeObject:
    return {
        "id": ID,
        "object": kind,
        "created": CREATED,
        "model": answer.asked.model,
        "system_fingerprint": FINGERPRINT,
    }


def _logprobs(answer: Answer, tokens: list[str]) -> FreeObject | None:
    if not answer.asked.logprobs:
        return None
    count = answer.asked.top_logprobs or 0
    return {"content": [_likely(token, count) for token in tokens], "refusal": None}


@lru_cache(REMEMBERED_TOKENS_MAX)
def _likely(token: str, count: int) -> msgspec.Raw:
    """Encode a token with so many guesses once: a long answer repeats few words."""
    guesses = [_token(token + "?" * i, LOGPROB - i) for i in range(count)]
    return msgspec.Raw(msgspec.json.encode(_token(token, LOGPROB) | {"top_logprobs": guesses}))


def _token(token: str, logprob: float) -> FreeObject:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _prompt_logprobs(answer: Answer) -> list[FreeObject | None]:
    """As vLLM has it: nothing for the first token, then by token number."""
    words = " ".join(message.text for message in answer.asked.messages).split()
    known: list[Any] = [
        {str(number): {"logprob": LOGPROB, "rank": 1, "decoded_token": word}}
        for number, word in enumerate(words)
    ]
    return [None, *known[1:]]


def _call_id(index: int) -> str:
    return f"call_{index}"
