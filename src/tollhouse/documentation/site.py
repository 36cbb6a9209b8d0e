"""The public pages of error codes at `/docs/errors`. They reveal nothing about a deployment."""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
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
from tollhouse.documentation.error_pages import (
    STYLE,
    ErrorDescription,
    error_page,
    index_page,
    unknown_page,
)

OPERATION: Final = "error_pages"
_STYLE_DIGEST: Final = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class ErrorPages(StaticSite):
    """Pages that are rendered once, when the worker starts."""

    def __init__(self, errors: Sequence[ErrorDescription], clock: Clock) -> None:
        super().__init__(
            root=ERROR_PAGES_PATH.encode(),
            operation=OPERATION,
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
            location = ".." + page
            return text_answer(308, f"See {location}.", PLAIN_TEXT, ("location", location))
        return text_answer(404, unknown_page(levels=path.count("/")), HTML)


def _file(page: str) -> File:
    content = page.encode()
    return File(content=content, media_type=HTML, etag=etag_of(content))
