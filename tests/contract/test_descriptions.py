"""Meanings of fields and operations are read from the docstrings below them."""

from msgspec import Struct

from tollhouse.contract import descriptions
from tollhouse.contract.operations import MODULES, OPERATIONS


class Base(Struct):
    """A base.

    It has
    lines.
    """

    first: int
    """The first
    of two."""
    second: int
    third: int = 0
    """A third."""


class Derived(Base):
    """One that inherits."""

    third: int = 1
    """Another third."""


def test_a_field_has_the_docstring_below_it_or_that_of_its_base() -> None:
    assert descriptions.of_field(Derived, "first") == "The first of two."
    assert descriptions.of_field(Derived, "third") == "Another third."
    assert descriptions.of_field(Base, "third") == "A third."
    assert descriptions.of_field(Derived, "second") is None


def test_the_docstring_of_a_type_has_no_indentation() -> None:
    assert descriptions.of_type(Base) == "A base.\n\nIt has\nlines."


def test_every_operation_has_a_docstring_of_its_own() -> None:
    meanings = descriptions.of_operations(MODULES)

    assert set(meanings) == {row.id for row in OPERATIONS}
