"""A page for each error code, rendered from `errors.json`, and their index.

Links are relative, so that they also work behind a proxy that puts a path before the gateway's.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

import msgspec
from msgspec import Struct

DATA: Final = Path(__file__).parent / "errors.json"

STYLE: Final = """\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem }
h1, code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8886; padding: .4rem .6rem .4rem 0; text-align: left;
  vertical-align: top }
"""
_INLINE: Final = re.compile(r"`(?P<code>[^`]+)`|\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)")
_SOURCE_FOLDER: Final = "reference/errors/"
"""Where the Markdown of the pages is; their links are relative to it."""
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} - Tollhouse</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
_ERROR: Final = """\
<p><a href="{index}">All errors</a></p>
<h1>{code}</h1>
<p>Status {statuses}.</p>
<h2>What it means</h2>
{meanings}
<h2>What to do</h2>
<p>{remedy}</p>
<p>If you ask for help, name the request ID: <code>request_id</code> in the error, or the
header <code>X-Request-ID</code>.</p>"""
_INDEX: Final = """\
<h1>Errors</h1>
<p>Every failure has one form: an object <code>error</code> with <code>code</code>,
<code>message</code>, <code>type</code>, <code>param</code>, <code>request_id</code> and
<code>doc_url</code>. Let programs act on <code>code</code>. <code>message</code> is for people and
may change.</p>
<table>
<tr><th>Code</th><th>Status</th><th>What to do</th></tr>
{rows}
</table>"""
_ROW: Final = """\
<tr><td><a href="{link}"><code>{code}</code></a></td>
<td>{statuses}</td><td>{remedy}</td></tr>"""
_UNKNOWN: Final = """\
<p><a href="{index}">All errors</a></p>
<h1>Unknown code</h1>
<p>This version of the gateway has no error of that code. Look at the list of all errors.</p>"""


class ErrorDescription(Struct, frozen=True, kw_only=True):
    """The description of one error code. Texts are Markdown with code and links only."""

    code: str
    statuses: str
    meanings: list[str]
    remedy: str


def read() -> list[ErrorDescription]:
    """Return the description of every code, in alphabetical order."""
    return msgspec.json.decode(DATA.read_bytes(), type=list[ErrorDescription])


def error_page(error: ErrorDescription) -> str:
    """Return the page of one code, for an address one level below that of the index."""
    body = _ERROR.format(
        index="../errors",
        code=escape(error.code),
        statuses=escape(error.statuses),
        meanings=_list(error.meanings),
        remedy=_inline(error.remedy, up="../"),
    )
    return _page(error.code, body)


def index_page(errors: Iterable[ErrorDescription], *, link_prefix: str) -> str:
    """Return the list of all codes. `link_prefix` is the relative path to the pages."""
    rows = [
        _ROW.format(
            link=escape(link_prefix + error.code),
            code=escape(error.code),
            statuses=escape(error.statuses),
            remedy=_inline(error.remedy, up="" if link_prefix else "../"),
        )
        for error in errors
    ]
    return _page("Errors", _INDEX.format(rows="\n".join(rows)))


def unknown_page(*, levels: int) -> str:
    """Return the page for a code that does not exist, `levels` levels below the index."""
    return _page("Unknown code", _UNKNOWN.format(index="../" * levels + "errors"))


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=escape(title), style=STYLE, body=body)


def _list(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"<p>{_inline(texts[0], up='../')}</p>"
    return "<ul>\n" + "\n".join(f"<li>{_inline(text, up='../')}</li>" for text in texts) + "\n</ul>"


def _inline(markdown: str, *, up: str) -> str:
    """Turn code and links into HTML. `up` leads from the page to the documentation's root."""
    parts: list[str] = []
    end = 0
    for found in _INLINE.finditer(markdown):
        parts.append(escape(markdown[end : found.start()], quote=False))
        if found["code"] is not None:
            parts.append(f"<code>{escape(found['code'])}</code>")
        else:
            target = urljoin(_SOURCE_FOLDER, found["target"]).removesuffix(".md")
            parts.append(f'<a href="{escape(up + target)}/">{escape(found["text"])}</a>')
        end = found.end()
    return "".join([*parts, escape(markdown[end:], quote=False)])
