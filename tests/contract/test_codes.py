"""The codes of failures: the same in the program, in the document and in the register."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from tollhouse.contract.error_codes import CODES, COMMAND_CODES
from tools.reference.errors import by_code

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (?P<status>\d{3})\b[^|]*\|[^|]*\|[^|]*\|(?P<codes>[^|]*)\|", re.MULTILINE)
CODE = re.compile(r"`(?P<code>[a-z_]+)`(?:\\\*)?(?P<is_of_the_command>†)?")

Codes = dict[int, set[str]]


def in_the_program() -> Codes:
    """By the status of every class that carries the code."""
    found: Codes = defaultdict(set)
    for code, classes in by_code().items():
        for failure in classes:
            found[int(failure.kind)].add(code)
    return dict(found)


def in_the_document() -> Codes:
    document: Any = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    code = document["components"]["schemas"]["ErrorBody"]["properties"]["code"]
    return {int(status): set(codes) for status, codes in code["x-tollhouse-codes"].items()}


def in_the_register(*, of_the_command: bool) -> Codes:
    """Those of the table "Errors by status"; a status may have several rows."""
    register = (DOCS / "open-questions.md").read_text(encoding="utf-8")
    table = register.partition("## Errors by status")[2].partition("\n## ")[0]
    found: Codes = defaultdict(set)
    for row in ROW.finditer(table):
        for code in CODE.finditer(row["codes"]):
            if bool(code["is_of_the_command"]) is of_the_command:
                found[int(row["status"])].add(code["code"])
    return dict(found)


def declared(codes: dict[int, tuple[str, ...]]) -> Codes:
    return {status: set(names) for status, names in codes.items()}


def test_every_code_of_the_program_is_declared_with_its_statuses() -> None:
    both = {
        status: set(CODES.get(status, ())) | set(COMMAND_CODES.get(status, ()))
        for status in CODES | COMMAND_CODES
    }

    assert in_the_program() == both


def test_the_document_lists_every_code_that_http_answers() -> None:
    assert in_the_document() == declared(CODES)


def test_the_register_lists_every_code() -> None:
    assert in_the_register(of_the_command=False) == declared(CODES)
    assert in_the_register(of_the_command=True) == declared(COMMAND_CODES)
