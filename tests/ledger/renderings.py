"""How templates print a request, each in the longest way that is in use."""

import json
from collections.abc import Callable
from html import escape
from typing import Any, cast

Body = dict[str, Any]
Rendering = Callable[[Body], str]


def indented(body: Body) -> str:
    """Text as it is; tools, and calls with their arguments parsed, as indented JSON."""
    return _rendered(body, text=str, structure=lambda value: _dumped(value, ensure_ascii=False))


def quoted(body: Body) -> str:
    """Text as JSON strings too."""
    return _rendered(
        body,
        text=lambda value: json.dumps(value, ensure_ascii=False),
        structure=lambda value: json.dumps(value, ensure_ascii=False),
    )


def escaped(body: Body) -> str:
    """Structures in ASCII that may stand inside HTML."""
    return _rendered(body, text=str, structure=_html_safe)


def represented(body: Body) -> str:
    """Structures as Python shows them, which is what a template does that forgets to say."""
    return _rendered(body, text=str, structure=repr)


def tagged(body: Body) -> str:
    """Structures as markup, a tag for each member; no template indents it."""
    return _rendered(body, text=str, structure=_tags)


RENDERINGS: list[Rendering] = [indented, quoted, escaped, represented, tagged]


def _rendered(body: Body, *, text: Callable[[str], str], structure: Callable[[Any], str]) -> str:
    lines = ["<tools>", *(structure(tool) for tool in body.get("tools", [])), "</tools>"]
    for message in body["messages"]:
        lines.append(f"<{message['role']}>")
        if message.get("tool_calls"):
            lines.append(structure([_parsed(call) for call in message["tool_calls"]]))
        lines += [
            text(message[name])
            for name in ("name", "reasoning_content", "tool_call_id")
            if message.get(name)
        ]
        lines += [text(said) for said in _said(message["content"])]
        lines.append("</>")
    return "\n".join(lines)


def _said(content: str | list[Body] | None) -> list[str]:
    if content is None:
        return []
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def _parsed(call: Body) -> Body:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return call
    return call | {"function": function | {"arguments": arguments}}


def _dumped(value: Any, *, ensure_ascii: bool) -> str:  # noqa: ANN401 - JSON
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=4)


def _html_safe(value: Any) -> str:  # noqa: ANN401 - JSON
    printed = _dumped(value, ensure_ascii=True)
    for mark in "<>&'":
        printed = printed.replace(mark, f"\\u{ord(mark):04x}")
    return printed


def _tags(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return "".join(
            f"\n<member>\n<name>{name}</name>{_tags(inner)}\n</member>"
            for name, inner in cast("Body", value).items()
        )
    if isinstance(value, list):
        return "".join(f"\n<item>{_tags(inner)}</item>" for inner in cast("list[Any]", value))
    return escape(value) if isinstance(value, str) else json.dumps(value)
