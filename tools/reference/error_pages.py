"""The content of the page of each error code that the gateway serves, and of their index.

Links are relative, so that they also work behind a proxy that puts a path before the gateway's.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from msgspec import Struct

from tollhouse.console import documentation
from tollhouse.console.documentation import ErrorBodies

PAGE: Final = Path(documentation.__file__).with_name("page.html")
_INLINE: Final = re.compile(r"`(?P<code>[^`]+)`|\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)")
_SOURCE_FOLDER: Final = "reference/errors/"
"""Where the Markdown of the pages is; their links are relative to it."""
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


_STYLE: Final = PAGE.read_text(encoding="utf-8").partition("<style>")[2].partition("</style>")[0]
STYLE_SOURCE: Final = f"'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src {STYLE_SOURCE}; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class ErrorDescription(Struct, frozen=True, kw_only=True):
    """The description of one error code. Texts are Markdown with code and links only."""

    code: str
    statuses: str
    meanings: list[str]
    remedy: str


def error_bodies(errors: Sequence[ErrorDescription]) -> ErrorBodies:
    """Return the pages as the gateway reads them. The index has two addresses."""
    pages = {f"/{error.code}": error_body(error) for error in errors}
    indexes = {"": _index(errors, link_prefix="errors/"), "/": _index(errors, link_prefix="")}
    return ErrorBodies(policy=CONTENT_SECURITY_POLICY, bodies=indexes | pages)


def error_body(error: ErrorDescription) -> str:
    """Return the page of one code, for an address one level below that of the index."""
    return _ERROR.format(
        index="../errors",
        code=escape(error.code),
        statuses=escape(error.statuses),
        meanings=_list(error.meanings),
        remedy=_inline(error.remedy, up="../"),
    )


def _index(errors: Iterable[ErrorDescription], *, link_prefix: str) -> str:
    rows = [
        _ROW.format(
            link=escape(link_prefix + error.code),
            code=escape(error.code),
            statuses=escape(error.statuses),
            remedy=_inline(error.remedy, up="" if link_prefix else "../"),
        )
        for error in errors
    ]
    return _INDEX.format(rows="\n".join(rows))


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
