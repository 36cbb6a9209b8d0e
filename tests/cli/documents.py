"""The commands in a document, as its reader would run them."""

import re
from textwrap import dedent

from tests.cli.commands import ROOT

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<lines>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """What stands in blocks that are marked as this language, in order."""
    found = _BLOCK.finditer(text)
    return [dedent(each["lines"]) for each in found if each["language"] == language]


def scripts(text: str) -> list[str]:
    """What stands in blocks that are marked as `sh`, in order."""
    return blocks(text, "sh")
