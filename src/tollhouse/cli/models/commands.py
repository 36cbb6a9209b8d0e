"""`tollhouse models import`: write the catalog of a LiteLLM proxy in the form of ours."""

import re
from pathlib import Path
from typing import Any, Final, cast

import click
import msgspec
from msgspec import Struct

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.models.errors import ImportUnreadable, YamlPackageMissing
from tollhouse.cli.models.imported import ImportedCatalog, Unmapped, strings_of, table_of
from tollhouse.cli.models.litellm_config import from_config
from tollhouse.cli.models.price_map import from_price_map

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class ShownGap(Struct, frozen=True, kw_only=True):
    """A setting that start-up asks for, and that the source does not have."""

    table: str
    setting: str


class ShownImport(Struct, frozen=True, kw_only=True):
    """What an import wrote and what it left out. `toml` is empty if it went into a file."""

    backends: list[str]
    models: list[str]
    gaps: list[ShownGap]
    not_mapped: list[Unmapped]
    toml: str


@click.command("import", epilog=example("tollhouse models import config.yaml --prices prices.json"))
@click.argument("source", metavar="FILE", type=_FILE)
@click.option(
    "--prices",
    "price_file",
    type=_FILE,
    help="A price map of LiteLLM (JSON), for what the configuration does not say.",
)
@click.option(
    "--model", "names", multiple=True, help="Of a price map, only this model; repeatable."
)
@click.option(
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A new file, instead of standard output.",
)
@json_option
def import_(
    source: Path,
    *,
    price_file: Path | None,
    names: tuple[str, ...],
    target: Path | None,
    as_json: bool,
) -> None:
    """Write backends and models as TOML, from LiteLLM's configuration or its price map.

    Standard error lists what could not be mapped, and why. A price that is not known is left as a
    marked gap, and start-up refuses the model until you fill it. Credentials are never copied:
    os.environ/NAME becomes api_key_variable = "NAME".
    """
    tree = _read(source)
    if isinstance(tree.get("model_list"), list):
        if names:
            message = "--model chooses from a price map, and FILE is a configuration."
            raise click.UsageError(message)
        catalog = from_config(tree, {} if price_file is None else _read(price_file))
    elif source.suffix == ".json":
        catalog = from_price_map(tree, names)
    else:
        message = f"{source}: neither a configuration with a model_list nor a price map (.json)."
        raise ImportUnreadable(message)
    text = catalog.toml()
    if target is not None:
        _write(target, text)
    elif not as_json:
        click.echo(text, nl=False)
    _show(catalog, "" if target is not None else text, as_json=as_json)


def _show(catalog: ImportedCatalog, text: str, *, as_json: bool) -> None:
    gaps = [
        ShownGap(table=f"{kind}.{name}", setting=setting)
        for kind, tables in (("backends", catalog.backends), ("models", catalog.models))
        for name, table in tables.items()
        for setting in table.gaps
    ]
    if as_json:
        body = ShownImport(
            backends=list(catalog.backends),
            models=list(catalog.models),
            gaps=gaps,
            not_mapped=catalog.unmapped,
            toml=text,
        )
        output.show(body, as_json=True)
        return
    found = f"{len(catalog.models)} models on {len(catalog.backends)} backends"
    output.note(f"{found}, {len(gaps)} gaps, {len(catalog.unmapped)} parts not mapped.")
    for gap in gaps:
        output.note(f"gap: {gap.table}: {gap.setting}")
    for each in catalog.unmapped:
        output.note(f"not mapped: {each.item}: {each.reason}")


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file. Errors have no text of it: it may have credentials."""
    if path.stat().st_size > FILE_BYTES_MAX:
        message = f"{path}: larger than {FILE_BYTES_MAX} bytes."
        raise ImportUnreadable(message)
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = _json(text) if path.suffix == ".json" else _yaml(text)
    except ValueError:
        message = f"{path}: not valid {'JSON' if path.suffix == '.json' else 'YAML'}."
        raise ImportUnreadable(message) from None
    if not isinstance(tree, dict):
        message = f"{path}: expected an object."
        raise ImportUnreadable(message)
    if any(_SURROGATE.search(text) for text in strings_of(cast("object", tree))):
        message = f"{path}: a text in it is not valid Unicode: it has half of a surrogate pair."
        raise ImportUnreadable(message)
    return table_of(cast("object", tree))


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError from error


def _yaml(text: str) -> object:
    try:
        import yaml  # noqa: PLC0415 - an extra, which most do not need
    except ModuleNotFoundError:
        raise YamlPackageMissing from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError from error


def _write(target: Path, text: str) -> None:
    """Write a new file. What cannot be written whole is removed, so that a next try can."""
    try:
        with target.open("xb") as file:
            try:
                file.write(text.encode())
                file.flush()
            except OSError:
                target.unlink()
                raise
    except FileExistsError:
        message = f"{target} exists already. Name another file, or remove it."
        raise ImportUnreadable(message) from None
    except OSError as error:
        message = f"{target} cannot be written: {error.strerror}."
        raise ImportUnreadable(message) from None
