"""Reading the files of the documentation into memory. Text stays compressed there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tollhouse.api.static_site import File, etag_of

BUILT: Final = Path(__file__).parent / "static"
"""The output folder of `make docs`; part of the wheel, but not of the repository."""

INDEX: Final = "index.html"
DIGESTS: Final = "digests.json"
COMPRESSED: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
PLAIN: Final = {".png": "image/png", ".webp": "image/webp"}
_HASHED_FOLDERS: Final = ("assets/javascripts/", "assets/stylesheets/")


class InlineDigests(Struct, frozen=True, kw_only=True):
    """The digests (SHA-256, base64) of what pages have inside, for the content security policy."""

    scripts: list[str] = []
    styles: list[str] = []


def read(folder: Path) -> Mapping[str, File]:
    """Return the files by their path below `folder`; empty if the site is not built."""
    return dict(_files(folder))


def read_digests(folder: Path) -> InlineDigests:
    """Return what the build found in the pages; empty if the site is not built."""
    path = folder / DIGESTS
    if not path.is_file():
        return InlineDigests()
    return msgspec.json.decode(path.read_bytes(), type=InlineDigests)


def _files(folder: Path) -> Iterator[tuple[str, File]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes() if path.is_file() else b""
        if path.suffix in PLAIN:
            yield name, File(content=content, media_type=PLAIN[path.suffix], etag=etag_of(content))
        elif path.suffix == ".gz":
            file = File(
                gzipped=content,
                media_type=COMPRESSED[path.with_suffix("").suffix],
                etag=etag_of(content),
                is_hashed=name.startswith(_HASHED_FOLDERS),
            )
            yield name.removesuffix(".gz"), file
