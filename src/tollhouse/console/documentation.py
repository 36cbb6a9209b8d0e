"""The documentation at `/docs`, with a page for each error code at `/docs/errors`.

Addresses in it are relative, since a proxy may put a path before the gateway's.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tollhouse.api import static_files
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

_HASHED_FOLDERS: Final = ("assets/javascripts/", "assets/stylesheets/")
BUILT: Final = Path(__file__).parent / "documentation"
"""The output folder of `make docs`; part of the wheel, but not of the repository."""
POLICY: Final = "policy.txt"
ERRORS: Final = Path(__file__).parent / "errors.json"
"""What `make reference` writes."""
ERROR_PAGE: Final = re.compile(r"/reference/errors/([a-z_]+)/?")
"""Where the built site links to the page of a single code."""
_PAGE: Final = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
_UNKNOWN_CODE: Final = '<p>No such code. <a href="{}../errors">All errors</a></p>'
_UNKNOWN_PAGE: Final = '<p>No such page. <a href="{}./">Start of the documentation</a></p>'
_NOT_BUILT: Final = """<p>The documentation is in every wheel. In a checkout, run
<code>make docs</code>. The <a href="{}errors">pages of errors</a> need no build.</p>"""


class ErrorBodies(Struct, frozen=True):
    """The content of each page of errors by its path, and their content security policy."""

    policy: str
    bodies: dict[str, str]


class Pages(StaticSite):
    """Files by their path below `root`. `unknown` is the body of the answer to other paths."""

    def __init__(
        self, root: str, files: Mapping[str, File], policy: str, unknown: str, clock: Clock
    ) -> None:
        name = "error_pages" if root == ERROR_PAGES_PATH else "documentation"
        super().__init__(
            root=root.encode(), operation=name, content_security_policy=policy, clock=clock
        )
        self._name, self._files, self._unknown = root.rpartition("/")[2], files, unknown

    def find(self, path: str) -> File | StaticAnswer:
        """Return the page or file at a path, a redirect to it, or 404."""
        up = "../" * (path.count("/") - 1) if path else f"{self._name}/"
        folder, _, name = path.removesuffix("/").rpartition("/")
        if (file := self._files.get(path)) is not None:
            return file
        if (code := ERROR_PAGE.fullmatch(path)) is not None:
            location = f"{up}errors/{code[1]}"
        elif f"{path}/" in self._files:
            location = f"{name or self._name}/"
        elif "." not in name and f"{folder}/{name}" in self._files:
            location = f"../{name}"
        else:
            return text_answer(404, _page("Not found", self._unknown.format(up)), HTML)
        return text_answer(308, f"See {location}.", PLAIN_TEXT, ("location", location))


def sites(clock: Clock) -> tuple[Pages, Pages]:
    """Return both sites. Pages of errors need no build, and are first: their path is within."""
    errors = msgspec.json.decode(ERRORS.read_bytes(), type=ErrorBodies)
    files: dict[str, File] = {}
    for path, body in errors.bodies.items():
        page = _page(path.strip("/") or "Errors", body).encode()
        files[path] = File(content=page, media_type=HTML, etag=etag_of(page))
    pages = Pages(ERROR_PAGES_PATH, files, errors.policy, _UNKNOWN_CODE, clock)
    return pages, built_site(BUILT, clock)


def built_site(folder: Path, clock: Clock) -> Pages:
    """Return the site in the output folder of a build, if there is one."""
    found = static_files.read(folder, hashed_folders=_HASHED_FOLDERS)
    if not found:
        return Pages("/docs", {}, "default-src 'none'", _NOT_BUILT, clock)
    files = {f"/{name}": file for name, file in found.items()}
    files |= {path.removesuffix("index.html"): file for path, file in files.items()}
    return Pages("/docs", files, (folder / POLICY).read_text(), _UNKNOWN_PAGE, clock)


def _page(title: str, body: str) -> str:
    return _PAGE.replace("{title}", title).replace("{body}", body)
