"""What the document says of a line of a table, and where it goes beyond the table."""

from typing import Any

from tests.contract.kinds import ANY, ANYTHING, NOT_GIVEN, Kind, Row
from tests.contract.tables import Parameters, Resource

ORIGIN = "x-tollhouse-origin"
PARTS = "x-tollhouse-adopted"
CODES = "x-tollhouse-codes"
EXCLUSIVE_DEFAULT = "x-tollhouse-default"
QUESTION = r"\?$"
BOUNDS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
}

Json = dict[str, Any]


def schema_of(document: Json, resource: Resource) -> Json:
    """The schema of a table; `A.b` is the object in the field `b` of `A`."""
    name, _, field = resource.schema.partition(".")
    schema = document["components"]["schemas"][name]
    if not field:
        return schema
    alternatives = schema["properties"][field]["anyOf"]
    (items,) = (each["items"] for each in alternatives if each.get("type") == "array")
    return items


def parameters_of(document: Json, table: Parameters) -> dict[str, Json]:
    operation = document["paths"][table.path][table.method]
    if table.place == "answer":
        headers = operation["responses"]["200"]["headers"]
        return {name: document["components"]["headers"][name] for name in headers}
    return {each["name"]: each for each in operation["parameters"] if each["in"] == table.place}


def check_schema(document: Json, resource: Resource) -> None:
    """What is said of the object as a whole: its fields, which are required, and others."""
    schema = schema_of(document, resource)
    properties: dict[str, Json] = schema["properties"]
    given = {name for name, prop in properties.items() if prop[ORIGIN] == "given"}
    assert given == {line.name for line in resource.rows}
    origins = {properties[name][ORIGIN] for name in set(properties) - given}
    assert origins <= ({"extension"} if resource.is_whole else {"adopted"})
    beyond = set[str]()
    required = {line.name for line in resource.rows if line.required}
    if resource.says_required:
        assert set(schema.get("required", [])) == required
    elif schema["required"]:
        beyond.add("required")
    refuses_unknown = schema.get("additionalProperties") is False
    assert refuses_unknown or not resource.refuses_unknown
    if refuses_unknown and not resource.refuses_unknown:
        beyond.add("additionalProperties")
    if schema.get(ORIGIN, "given") == "given":
        assert set(schema.get(PARTS, {})) == beyond


def check_field(document: Json, resource: Resource, line: Row) -> None:
    """Everything that the document says of a field is in the table, or marked as ours."""
    prop = schema_of(document, resource)["properties"][line.name]
    assert prop[ORIGIN] == "given"
    name = set[str]() if line.is_named else {"name"}
    assert set(prop.get(PARTS, {})) == _beyond(line, prop) | name


def check_parameters(document: Json, table: Parameters) -> None:
    found = parameters_of(document, table)
    given = {name for name, each in found.items() if each[ORIGIN] == "given"}
    assert given == {line.name for line in table.rows}
    assert not table.is_whole or set(found) == given


def check_parameter(document: Json, table: Parameters, line: Row) -> None:
    parameter = parameters_of(document, table)[line.name]
    beyond = _beyond(line, parameter["schema"])
    assert parameter["required"] or not line.required
    if parameter["required"] and not line.required:
        beyond.add("required")
    if not line.is_named:
        beyond.add("name")
    if table.place == "answer":
        beyond.add("operations")
    assert parameter[ORIGIN] == "given"
    assert set(parameter.get(PARTS, {})) == beyond


def _beyond(line: Row, schema: Json) -> set[str]:
    """The parts of a schema that the table does not have. Raises where it contradicts the table."""
    beyond = set[str]()
    found, takes_null = _alternatives(schema)
    if line.kinds == (ANYTHING,):
        beyond |= set() if found == [ANYTHING] else {"type"}
    else:
        assert takes_null or not line.null
        beyond |= {"null"} if takes_null and not line.null else set()
        beyond |= _compared(line.kinds, found)
    if line.default is not NOT_GIVEN:
        assert schema.get("default", schema.get(EXCLUSIVE_DEFAULT)) == line.default
    elif "default" in schema:
        beyond.add("default")
    return beyond | ({CODES} if CODES in schema else set())


def _compared(told: tuple[Kind, ...], found: list[Kind]) -> set[str]:
    beyond = set[str]()
    by_type = {(kind.json_type, kind.table): kind for kind in found}
    for kind in told:
        beyond |= _compared_kind(kind, by_type.pop((kind.json_type, kind.table)))
    return beyond | ({"type"} if by_type else set())


def _compared_kind(told: Kind, found: Kind) -> set[str]:
    beyond = set[str]()
    for low_or_high, bound in ((told.low, found.low), (told.high, found.high)):
        assert low_or_high in (None, bound), (low_or_high, bound)
        beyond |= {"bounds"} if bound is not None and low_or_high is None else set()
    assert set(told.values) <= set(found.values)
    beyond |= {"enum"} if set(found.values) - set(told.values) else set()
    assert told.format == found.format
    assert told.ending in ("", found.ending)
    beyond |= {"pattern"} if found.ending != told.ending else set()
    if told.of:
        assert told.takes_null_items == found.takes_null_items
        beyond |= _compared(told.of, list(found.of))
    elif found.of:
        beyond.add("additionalProperties")
    return beyond


def _alternatives(schema: Json) -> tuple[list[Kind], bool]:
    """The kinds of a schema, and whether it takes null."""
    kinds: list[Kind] = []
    takes_null = False
    for part in _parts(schema):
        types: list[str] | str | None = part.get("type")
        names = types if isinstance(types, list) else [types]
        takes_null |= "null" in names
        kinds += [_kind(part, name) for name in names if name != "null"]
    return kinds, takes_null or kinds == [ANYTHING]


def _parts(schema: Json) -> list[Json]:
    if "anyOf" not in schema:
        return [schema]
    return [part for alternative in schema["anyOf"] for part in _parts(alternative)]


def _kind(schema: Json, json_type: str | None) -> Kind:
    if "$ref" in schema:
        return Kind(json_type="object", table=schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        values: list[Any] = schema.get("enum", [schema.get("const")])
        return Kind(json_type=json_type or "string", values=tuple(values))
    if json_type is None:
        return ANYTHING
    low, high = BOUNDS.get(json_type, ("", ""))
    inner: Json | bool | None = schema.get("items") or schema.get("additionalProperties")
    of, takes_null_items = _alternatives(inner) if isinstance(inner, dict) else ([], False)
    pattern = schema.get("pattern", "")
    return Kind(
        json_type=json_type,
        low=schema.get(low),
        high=schema.get(high),
        of=tuple(kind for kind in of if kind.json_type != ANY),
        takes_null_items=takes_null_items,
        format=schema.get("format", "") if json_type == "string" else "",
        ending="?" if pattern == QUESTION else pattern,
    )
