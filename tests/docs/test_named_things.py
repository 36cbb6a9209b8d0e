"""Pages name only commands, options, settings, metrics, error codes and files that exist."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, get_args

import click
import pytest
from msgspec.structs import fields

from tests.cli.commands import ROOT
from tests.cli.documents import blocks, read
from tests.docs.test_commands import DOCUMENTS
from tests.support.routes import ROUTES
from tollhouse.base.dialects import Dialect
from tollhouse.catalog.types import Backend, CatalogJudge, Model
from tollhouse.cli.main import tollhouse
from tollhouse.contract.bounds import OVERLAP_SECONDS_MAX
from tollhouse.settings.sections import Settings
from tools.reference.errors import by_code
from tools.reference.metrics import declared

FILE = re.compile(r"(?<![\w/.])((?:tests|tools|console/e2e|bench)/[\w/.]+\.\w+)")
INLINE = re.compile(r"`([^`\n]+)`")
SECTIONS: dict[str, set[str]] = {
    section.name: {each.name for each in fields(section.type)}
    for section in fields(Settings)
    if isinstance(section.type, type) and hasattr(section.type, "__struct_fields__")
} | {
    "backends": {each.name for each in fields(Backend)},
    "models": {each.name for each in fields(Model)},
    "judge": {each.name for each in fields(CatalogJudge)},
}
OF_OTHERS = {"redis.conf", "server.address"}
"""A file of Redis, and a name of OpenTelemetry."""
OTHER_PROGRAMS = {"model_providers", "sources"}
"""Tables of Codex and Vector."""
METRICS = {name.removesuffix("_total") for name, *_ in declared()}


def wrong_words(line: str) -> Iterator[str]:
    """Verbs and options of a command line that the command does not have."""
    command: click.Command = tollhouse
    words = re.split(r" [|>]| --(?: |$)", line)[0].split()[1:]
    for word in words:
        if word.startswith("-"):
            break
        if isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                yield from () if word.isupper() else (word,)
                return
            command = found
    known = {"--help", "--config"} | {
        name for each in command.params for name in (*each.opts, *each.secondary_opts)
    }
    quoted = " ".join(re.sub(r"\"[^\"]*\"|'[^']*'", "TEXT", " ".join(words)).split())
    yield from (word for word in re.findall(r"(?<=\s)--[a-z-]+", f" {quoted}") if word not in known)


def named_settings(tree: dict[str, Any]) -> Iterator[str]:
    """Settings of a TOML block as `section.name`. Lines alone are those of a model."""
    for section, value in tree.items():
        if section not in SECTIONS:
            yield f"models.{section}"
            continue
        for table in value.values() if section in ("backends", "models") else [value]:
            yield from (f"{section}.{name}" for name in table)


def is_setting(name: str) -> bool:
    section, _, field = name.partition(".")
    return (
        re.sub(r"_(file|variable)$", "", field) in SECTIONS[section] or field in SECTIONS[section]
    )


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_page_names_only_what_exists(page: str) -> None:
    text = read(page)
    inline = INLINE.findall(text)
    trees = [tomllib.loads(block) for block in blocks(text, "toml")]
    ours = [tree for tree in trees if not tree.keys() & OTHER_PROGRAMS]
    lines = [line for script in blocks(text, "sh") for line in script.splitlines()]
    commands = [line for line in (*inline, *lines) if line.startswith("tollhouse ")]
    settings = [each for each in inline if re.fullmatch(r"[a-z]+\.[a-z_]+", each)]
    settings = [each for each in settings if each.partition(".")[0] in SECTIONS]
    settings += [name for tree in ours for name in named_settings(tree)]
    metrics = re.findall(r"`(tollhouse_[a-z_]+[a-z])[`{]", text)
    codes = re.findall(r"\b[45]\d\d `([a-z_]+)`", text)

    assert [(line, word) for line in commands for word in wrong_words(line)] == []
    assert [each for each in settings if each not in OF_OTHERS and not is_setting(each)] == []
    assert {re.sub(r"_(total|bucket|sum|count)$", "", each) for each in metrics} <= METRICS
    assert set(codes) <= {*by_code(), "policy_error"}
    assert [path for path in FILE.findall(text) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("words", "is_true"),
    [
        ("its base URL end in `/compat/anthropic`", "/compat/anthropic/v1/messages" in str(ROUTES)),
        ("Of Anthropic and Azure OpenAI", {*get_args(Dialect)} == {"openai", "azure", "anthropic"}),
        ("for up to a week", OVERLAP_SECONDS_MAX == 7 * 24 * 3600),
    ],
)
def test_what_the_questions_are_answered_with_is_true(words: str, *, is_true: bool) -> None:
    assert words in read("docs/faq.md")
    assert is_true
