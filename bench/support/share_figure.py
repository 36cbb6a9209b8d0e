"""A figure of shares as an SVG: one bar for each kind of load, its parts side by side."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 760
_LEFT, _BAR, _ROW, _LEGEND_ROW = 110, 34, 56, 22
_COLOURS: Final = (
    *("#1d4e89", "#00798c", "#66a182", "#d1b000", "#edae49"),
    *("#d1495b", "#8d5b9a", "#8a8f98"),
)
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}"
    ".share{fill:#fff;font-weight:600;text-anchor:middle}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}"
)
_LEAST_WITH_TEXT: Final = 0.05


def drawn(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return the SVG; `rows` gives the share of each part by the name of its bar."""
    parts = list(dict.fromkeys(part for shares in rows.values() for part in shares))
    colours = dict(zip(parts, _COLOURS, strict=False))
    legend_top = _ROW * len(rows) + 28
    height = legend_top + _LEGEND_ROW * ((len(parts) + 1) // 2) + 10
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            *(
                line
                for place, (name, shares) in enumerate(rows.items())
                for line in _bar(name, shares, colours, top=10 + _ROW * place)
            ),
            *_legend(parts, colours, top=legend_top),
            "</svg>\n",
        )
    )


def _bar(
    name: str, shares: Mapping[str, float], colours: Mapping[str, str], *, top: int
) -> list[str]:
    lines = [f'<text x="0" y="{top + 22}">{escape(name)}</text>']
    left, whole = float(_LEFT), WIDTH - _LEFT
    for part, share in shares.items():
        width = share * whole
        lines.append(
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"'
            f' fill="{colours[part]}"><title>{escape(part)}: {share:.0%}</title></rect>'
        )
        if share >= _LEAST_WITH_TEXT:
            middle = left + width / 2
            lines.append(f'<text class="share" x="{middle:.1f}" y="{top + 22}">{share:.0%}</text>')
        left += width
    return lines


def _legend(parts: Sequence[str], colours: Mapping[str, str], *, top: int) -> list[str]:
    lines: list[str] = []
    for place, part in enumerate(parts):
        left, line_top = place % 2 * WIDTH // 2, top + place // 2 * _LEGEND_ROW
        lines.append(
            f'<rect x="{left}" y="{line_top}" width="13" height="13" fill="{colours[part]}"/>'
            f'<text x="{left + 20}" y="{line_top + 12}">{escape(part)}</text>'
        )
    return lines
