"""The commands in a document, as its reader would run them."""

import re
from textwrap import dedent

from tests.cli.commands import ROOT

_BLOCK = re.compile(
    r"^(?P<indent> *)```sh\n(?P<script>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def scripts(text: str) -> list[str]:
    """What stands in blocks that are marked as `sh`, in order."""
    return [dedent(block["script"]) for block in _BLOCK.finditer(text)]
