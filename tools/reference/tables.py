"""Tables of Markdown."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells may hold anything but line breaks."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def code(text: str) -> str:
    """Shown as it is written."""
    return f"`{text}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
