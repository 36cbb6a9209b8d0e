"""The scripted engine of a trial: answers chats with a fixed text, plays an agent's task, judges.

Every word is a token. A message whose first line is a script is answered by it.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, islice
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.contract.bounds import FreeObject
from tollhouse.trial import agent_task, demonstration_judge
from tollhouse.trial.agent_task import ToolCall
from tollhouse.trial.chat import MODEL, Chat, last_words, prompt_tokens
from tollhouse.trial.schemas import example

HOST: Final = "127.0.0.1"
WAIT_MS_MAX: Final = 3_600_000
TOKENS_MAX: Final = 1_000_000
TOKENS_DEFAULT: Final = 16
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
TEXT: Final = (
    "The gate is open and the toll is paid, so the road goes on through the hills to the sea. "
    "Whoever comes by day may pass by day, whoever comes by night may pass by night."
)
WORDS: Final = tuple(" " + word for word in TEXT.split())
TOKEN: Final = re.compile(r"\s*\S+|\s+")
OPENING: Final = '{"script"'
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream; charset=utf-8"
DONE: Final = b"[DONE]"
BODY: Final[FreeObject] = {
    "id": "chatcmpl-trial",
    "created": 1_700_000_000,
    "system_fingerprint": "fp_trial",
}

Milliseconds = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer. Fields that are left out behave as in a working engine.

    `cut_after` closes the connection after so many events, of which a JSON body is one.
    """

    status: Annotated[int, Meta(ge=200, le=599)] = 200
    headers: dict[str, str] = {}
    before_head_ms: Milliseconds = 0
    between_events_ms: Milliseconds = 0
    cut_after: Annotated[int, Meta(ge=0)] | None = None
    text: str | None = None
    tokens: Annotated[int, Meta(ge=0, le=TOKENS_MAX)] | None = None


class _ScriptedLine(Struct, frozen=True, forbid_unknown_fields=True):
    script: Script


class _AnswerCut(Exception):
    """The script has ended the connection."""


class Answer(NamedTuple):
    """An answer, whose choices are all equal: the tokens of a text, or a call and its arguments."""

    chat: Chat
    tokens: Sequence[str]
    call: ToolCall | None
    finish_reason: str

    @property
    def usage(self) -> FreeObject:
        """The usage of all choices together. The prompt counts once."""
        prompt, completion = prompt_tokens(self.chat.messages), len(self.tokens) * self.choices
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    @property
    def choices(self) -> int:
        """The number of choices."""
        return self.chat.n or 1


def script_of(chat: Chat) -> Script:
    """Return the script in the first line of the last user message, or that of a sound answer."""
    said = last_words(chat.messages)
    if not said.startswith(OPENING):
        return Script()
    return msgspec.json.decode(said.split("\n", 1)[0], type=_ScriptedLine).script


def answer_to(chat: Chat, script: Script) -> Answer:
    """Return the answer to a chat, cut at its bound on output tokens."""
    call = None
    if script.text is None and script.tokens is None:
        call = agent_task.next_call(chat) or _forced_call(chat)
    tokens = _text_tokens(chat, script) if call is None else TOKEN.findall(call.arguments)
    bound = chat.output_tokens_max
    if bound is not None and len(tokens) > bound:
        return Answer(chat, tokens[:bound], call, "length")
    return Answer(chat, tokens, call, "stop" if call is None else "tool_calls")


def completion(answer: Answer) -> bytes:
    """Return the whole answer as JSON."""
    said = "".join(answer.tokens)
    message: FreeObject = {"role": "assistant", "content": said, "refusal": None}
    if answer.call is not None:
        message |= {"content": None, "tool_calls": [_call(answer, said)]}
    finish = answer.finish_reason
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        for index in range(answer.choices)
    ]
    more = {"object": "chat.completion", "model": answer.chat.model, "choices": choices}
    return msgspec.json.encode(BODY | more | {"usage": answer.usage})


def records(answer: Answer) -> Iterator[bytes]:
    """Yield the data of each event of a stream."""
    body = BODY | {"object": "chat.completion.chunk", "model": answer.chat.model}
    for delta in _deltas(answer):
        finish = None if delta else answer.finish_reason
        for index in range(answer.choices):
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            yield msgspec.json.encode(body | {"choices": [choice]})
    if answer.chat.includes_usage:
        yield msgspec.json.encode(body | {"choices": [], "usage": answer.usage})
    yield DONE


def _deltas(answer: Answer) -> Iterator[FreeObject]:
    """Yield what each record adds to every choice; the last one, which ends it, adds nothing."""
    yield {"role": "assistant", "content": ""}
    if answer.call is not None:
        yield {"tool_calls": [{"index": 0, **_call(answer, "")}]}
    for token in answer.tokens:
        if answer.call is None:
            yield {"content": token}
        else:
            yield {"tool_calls": [{"index": 0, "function": {"arguments": token}}]}
    yield {}


def _call(answer: Answer, arguments: str) -> FreeObject:
    assert answer.call is not None
    # An ID that no earlier call of the conversation has.
    number = answer.chat.calls_made
    function = {"name": answer.call.name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _text_tokens(chat: Chat, script: Script) -> Sequence[str]:
    wanted = chat.response_format or {}
    if script.text is not None:
        return TOKEN.findall(script.text)
    if script.tokens is None and (played := agent_task.closing_text(chat)) is not None:
        return TOKEN.findall(played)
    if script.tokens is None and wanted.get("type") in ("json_object", "json_schema"):
        named: FreeObject = wanted.get("json_schema") or {}
        return TOKEN.findall(json.dumps(example(named.get("schema") or {})))
    count = TOKENS_DEFAULT if script.tokens is None else script.tokens
    words = list(islice(cycle(WORDS), count))
    # A text does not begin with a space.
    return [word.lstrip() for word in words[:1]] + words[1:]


def _forced_call(chat: Chat) -> ToolCall | None:
    """Return a call of the tool that the request forces, of the first one if it names none."""
    choice = chat.tool_choice
    if not chat.tools or not (choice == "required" or isinstance(choice, dict)):
        return None
    functions: list[FreeObject] = [tool.get("function") or {} for tool in chat.tools]
    wanted: FreeObject = (choice.get("function") or {}) if isinstance(choice, dict) else {}
    named = [each for each in functions if each.get("name") == wanted.get("name")]
    function = (named or functions)[0]
    arguments = json.dumps(example(function.get("parameters") or {}))
    return ToolCall(str(function.get("name")), arguments)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is inherited
        """Log nothing: the gateway records the requests."""

    def do_GET(self) -> None:
        """Answer probes and the list of models."""
        match self.path:
            case "/health":
                self._whole(200, {"status": "ok"})
            case "/v1/models":
                listed = {"id": MODEL, "object": "model", "created": 0, "owned_by": "tollhouse"}
                self._whole(200, {"object": "list", "data": [listed]})
            case _:
                self._fail(404, "There is nothing here.")

    def do_POST(self) -> None:
        """Answer a chat."""
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(min(length, BODY_BYTES_MAX))
        if self.path != "/v1/chat/completions":
            self._fail(404, "There is nothing here.")
            return
        try:
            chat = msgspec.json.decode(body, type=Chat)
            script = script_of(chat)
        except msgspec.MsgspecError as error:
            self._fail(400, str(error))
            return
        try:
            self._answer(chat, script)
        except (_AnswerCut, OSError):
            self.close_connection = True

    def _answer(self, chat: Chat, script: Script) -> None:
        if chat.model == DEMONSTRATION_JUDGE:
            self._whole(200, demonstration_judge.completion(last_words(chat.messages)))
            return
        time.sleep(script.before_head_ms / 1000)
        if script.status != Script().status:
            self._fail(script.status, "The script says so.", script.headers)
        elif chat.stream:
            self._stream(records(answer_to(chat, script)), script)
        else:
            body = completion(answer_to(chat, script))
            self._head(200, script.headers, JSON, length=len(body))
            self._break_at(0, script)
            self.wfile.write(body)

    def _stream(self, payloads: Iterator[bytes], script: Script) -> None:
        self._head(200, script.headers, EVENTS)
        for number, payload in enumerate(payloads):
            self._break_at(number, script)
            time.sleep(script.between_events_ms / 1000 if number else 0)
            record = b"data: %b\n\n" % payload
            self.wfile.write(b"%x\r\n%b\r\n" % (len(record), record))
        self.wfile.write(b"0\r\n\r\n")

    def _break_at(self, events: int, script: Script) -> None:
        if script.cut_after == events:
            raise _AnswerCut

    def _fail(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        error: FreeObject = {"message": message, "type": "scripted", "code": None}
        self._whole(status, {"error": error}, headers or {})

    def _whole(
        self, status: int, tree: FreeObject, headers: Mapping[str, str] | None = None
    ) -> None:
        body = msgspec.json.encode(tree)
        self._head(status, headers or {}, JSON, length=len(body))
        self.wfile.write(body)

    def _head(
        self, status: int, headers: Mapping[str, str], content_type: str, length: int | None = None
    ) -> None:
        framing = ("transfer-encoding", "chunked")
        if length is not None:
            framing = ("content-length", str(length))
        self.send_response(status)
        for name, value in (("content-type", content_type), *headers.items(), framing):
            self.send_header(name, value)
        self.end_headers()


def server(port: int) -> ThreadingHTTPServer:
    """Return a server that listens on loopback; port 0 chooses a free one."""
    return _Server((HOST, port), _Handler)
