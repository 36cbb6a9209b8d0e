"""`python -m tools.sbom`: print the dependencies of the package as a CycloneDX document.

It reads the lock of the runtime and needs no network.
"""

import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[^\n]*((?:\n\s+--hash=sha256:[0-9a-f]+[ \\]*)*)", re.MULTILINE
)
HASH = re.compile(r"sha256:([0-9a-f]+)")


def main() -> int:
    """Print the document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    json.dump(document(project["name"], project["version"], lock), sys.stdout, indent=1)
    print()
    return 0


def document(name: str, version: str, lock: str) -> dict[str, Any]:
    """Return the document with the packages of a lock as components."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": version}},
        "components": [component(*pin) for pin in PIN.findall(lock)],
    }


def component(name: str, version: str, hashes: str) -> dict[str, Any]:
    """Return one component, with the digests of its files and its licence if that is known."""
    digests = [{"alg": "SHA-256", "content": digest} for digest in HASH.findall(hashes)]
    named = canonicalize_name(name)
    known = {"licenses": [{"license": {"name": text}}]} if (text := licence(name)) else {}
    return {
        "type": "library",
        "name": named,
        "version": version,
        "purl": f"pkg:pypi/{named}@{version}",
        "hashes": digests,
        **known,
    }


def licence(name: str) -> str | None:
    """Return the licence that the installed package states, or None."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return None
    stated = [found[field] for field in ("License-Expression", "License") if field in found]
    return next((text.partition("\n")[0] for text in stated if text), None)


if __name__ == "__main__":
    sys.exit(main())
