"""A curve as text for the terminal, and as a PNG file."""

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

COLUMNS: Final = 60
ROWS: Final = 16
PIXELS: Final = 480
MARGIN: Final = 24
WHITE: Final = b"\xff\xff\xff"
GREY: Final = b"\xc8\xc8\xc8"
BLUE: Final = b"\x1f\x5f\xbf"
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"

Point = tuple[float, float]
"""Horizontal and vertical position, both from 0 to 1."""


def in_terminal(points: Sequence[Point], *, across: str, up: str) -> str:
    """Return the curve drawn with characters, with named axes."""
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    for x, y in _filled(points, COLUMNS):
        grid[ROWS - 1 - round(y * (ROWS - 1))][round(x * (COLUMNS - 1))] = "•"
    lines = [f"{up}", *("│" + "".join(row).rstrip() for row in grid), "└" + "─" * COLUMNS]
    return "\n".join([*lines, f"{across:>{COLUMNS + 1}}"])


def write_png(path: Path, points: Sequence[Point]) -> None:
    """Write a square picture of the curve, with a grid of tenths."""
    pixels = [bytearray(WHITE * PIXELS) for _ in range(PIXELS)]
    span = PIXELS - 2 * MARGIN - 1
    for tenth in range(11):
        place = MARGIN + round(tenth / 10 * span)
        for other in range(MARGIN, PIXELS - MARGIN):
            _put(pixels, place, other, GREY)
            _put(pixels, other, place, GREY)
    for x, y in _filled(points, span):
        across, down = MARGIN + round(x * span), PIXELS - 1 - MARGIN - round(y * span)
        for near in (0, 1):
            _put(pixels, across + near, down, BLUE)
            _put(pixels, across, down + near, BLUE)
    path.write_bytes(_png(pixels))


def _filled(points: Sequence[Point], steps: int) -> list[Point]:
    """Return the points with the straight lines between them."""
    drawn: list[Point] = []
    for (x, y), (next_x, next_y) in pairwise(points):
        count = max(1, round(max(abs(next_x - x), abs(next_y - y)) * steps))
        drawn += [
            (x + (next_x - x) * step / count, y + (next_y - y) * step / count)
            for step in range(count + 1)
        ]
    return drawn or list(points)


def _put(pixels: list[bytearray], across: int, down: int, colour: bytes) -> None:
    pixels[down][3 * across : 3 * across + 3] = colour


def _png(pixels: Sequence[bytearray]) -> bytes:
    """Encode the pixels with eight bits per colour and no filter."""
    head = struct.pack(">IIBBBBB", PIXELS, PIXELS, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row for row in pixels)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
