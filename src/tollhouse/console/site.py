"""The console at `/console`. Its files are public, since they show nothing without a key.

`/` leads to it.
"""

from collections.abc import Mapping
from typing import Final

from tollhouse.api.static_site import (
    HTML,
    PLAIN_TEXT,
    File,
    StaticAnswer,
    StaticSite,
    text_answer,
)
from tollhouse.base.clock import Clock
from tollhouse.console.files import INDEX

ROOT: Final = b"/console"
OPERATION: Final = "console"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollhouse</title></head>
<body>
<h1>The console is not built</h1>
<p>Run <code>make console</code> in the checkout and start the gateway again.
An installed wheel has the console built in.</p>
</body>
</html>
"""


class Site(StaticSite):
    """The built files, and one page for every other path."""

    def __init__(self, files: Mapping[str, File], clock: Clock) -> None:
        super().__init__(
            root=ROOT,
            operation=OPERATION,
            content_security_policy=CONTENT_SECURITY_POLICY,
            clock=clock,
        )
        self._files = files

    def find(self, path: str) -> File | StaticAnswer:
        """Return the file at a path, or the page that shows all other paths."""
        if INDEX not in self._files:
            return text_answer(503, _NOT_BUILT, HTML)
        name = path[1:]
        file = self._files.get(name)
        if file is None and name.startswith("assets/"):
            return text_answer(404, "No such file.", PLAIN_TEXT)
        return file or self._files[INDEX]


class StartPage(StaticSite):
    """Leads from `/` to the console."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(
            root=b"/",
            operation=OPERATION,
            content_security_policy=CONTENT_SECURITY_POLICY,
            clock=clock,
        )

    def find(self, path: str) -> StaticAnswer:
        """Redirect by a relative address, since a proxy may put a path before it."""
        del path
        return text_answer(307, "The console is at /console.", PLAIN_TEXT, ("location", "console"))

    def is_at(self, raw_path: bytes) -> bool:
        """Return whether the path is `/` itself."""
        return raw_path == self._root
