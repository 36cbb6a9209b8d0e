"""The public documentation: the built site at `/docs`, and a page per error at `/docs/errors`.

They reveal nothing about a deployment.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from tollhouse.api.static_site import (
    HTML,
    PLAIN_TEXT,
    File,
    StaticAnswer,
    StaticSite,
    etag_of,
    text_answer,
)
from tollhouse.base.clock import Clock
from tollhouse.base.errors import ERROR_PAGES_PATH
from tollhouse.documentation import error_pages, files
from tollhouse.documentation.error_pages import (
    STYLE,
    ErrorDescription,
    error_page,
    index_page,
    unknown_page,
)
from tollhouse.documentation.files import INDEX, InlineDigests

ROOT: Final = "/docs"
ERROR_PAGES_OPERATION: Final = "error_pages"
SITE_OPERATION: Final = "documentation"
ERROR_PAGE: Final = re.compile(r"reference/errors/([a-z_]+)/?")
"""Where the site links to the page of a single code, which is below `/docs/errors`."""
_STYLE_DIGEST: Final = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollhouse</title></head>
<body>
<h1>The documentation is not built</h1>
<p>Run <code>make docs</code> in the checkout and start the gateway again.
An installed wheel has the documentation built in.
The <a href="{errors}">pages of errors</a> need no build.</p>
</body>
</html>
"""
_UNKNOWN: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Unknown page - Tollhouse</title></head>
<body>
<h1>Unknown page</h1>
<p>This version of the documentation has no such page.
Look for it from the <a href="{start}">start page</a>.</p>
</body>
</html>
"""


class ErrorPages(StaticSite):
    """Pages that are rendered once, when the worker starts."""

    def __init__(self, errors: Sequence[ErrorDescription], clock: Clock) -> None:
        super().__init__(
            root=ERROR_PAGES_PATH.encode(),
            operation=ERROR_PAGES_OPERATION,
            content_security_policy=CONTENT_SECURITY_POLICY,
            clock=clock,
        )
        self._files = {f"/{error.code}": _file(error_page(error)) for error in errors}
        self._files[""] = _file(index_page(errors, link_prefix="errors/"))
        self._files["/"] = _file(index_page(errors, link_prefix=""))

    def find(self, path: str) -> File | StaticAnswer:
        """Return the page of a code, the index, or 404. One slash too many is redirected."""
        if (file := self._files.get(path)) is not None:
            return file
        if (page := path.removesuffix("/")) in self._files:
            return _redirect(".." + page)
        return text_answer(404, unknown_page(levels=path.count("/")), HTML)


class DocumentationSite(StaticSite):
    """The built site. Its addresses are relative, since a proxy may put a path before it."""

    def __init__(self, pages: Mapping[str, File], digests: InlineDigests, clock: Clock) -> None:
        super().__init__(
            root=ROOT.encode(),
            operation=SITE_OPERATION,
            content_security_policy=site_policy(digests),
            clock=clock,
        )
        self._files = pages

    def find(self, path: str) -> File | StaticAnswer:
        """Return the page or file at a path, a redirect to it, or 404."""
        name = path.removeprefix("/")
        up = "../" * name.count("/")
        if INDEX not in self._files:
            errors = f"{up}errors" if path else f"{ROOT.rpartition('/')[2]}/errors"
            return text_answer(404, _NOT_BUILT.format(errors=errors), HTML)
        is_folder = path.endswith("/")
        if (file := self._files.get(f"{name}{INDEX}" if is_folder else name)) is not None:
            return file
        if (page := ERROR_PAGE.fullmatch(name)) is not None:
            return _redirect(f"{up}errors/{page[1]}")
        if not is_folder and f"{name}/{INDEX}".removeprefix("/") in self._files:
            return _redirect(f"{(ROOT + path).rpartition('/')[2]}/")
        return text_answer(404, _UNKNOWN.format(start=up or "./"), HTML)


def documentation_sites(clock: Clock) -> tuple[StaticSite, ...]:
    """Return the sites of the package. Pages of errors are first, since their path is within."""
    site = DocumentationSite(files.read(files.BUILT), files.read_digests(files.BUILT), clock)
    return ErrorPages(error_pages.read(), clock), site


def site_policy(digests: InlineDigests) -> str:
    """Return the content security policy that lets pages load and run only what was built."""
    return (
        f"default-src 'none'; script-src {_sources(digests.scripts)}; "
        f"style-src {_sources(digests.styles)}; connect-src 'self'; "
        "img-src 'self' data:; worker-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _sources(digests: Sequence[str]) -> str:
    return " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])


def _redirect(location: str) -> StaticAnswer:
    return text_answer(308, f"See {location}.", PLAIN_TEXT, ("location", location))


def _file(page: str) -> File:
    content = page.encode()
    return File(content=content, media_type=HTML, etag=etag_of(content))
