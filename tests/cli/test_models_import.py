"""`tollhouse models import`: LiteLLM's configuration and price map in the form of our catalog."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tollhouse.catalog import rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.cli.models.imported import ImportedCatalog, price_text
from tollhouse.cli.models.litellm_config import from_config
from tollhouse.cli.models.price_map import from_price_map

GUIDE = read("docs/guides/migration.md")
SECRET = "sk-NEVER-PRINTED"
CONFIG = f"""
model_list:
  - model_name: gpt-5
    litellm_params: {{model: openai/gpt-5, api_key: os.environ/COMPANY_OPENAI_KEY, rpm: 60}}
  - model_name: coder
    litellm_params: &coder
      model: hosted_vllm/Qwen/Qwen3-Coder
      api_base: http://10.0.0.7:8000/v1
      input_cost_per_token: 2e-07
      output_cost_per_token: 8.0e-07
      timeout: 300
    model_info: &described
      {{max_input_tokens: 98304, max_output_tokens: 32768, supports_function_calling: true}}
  - model_name: coder
    litellm_params: {{<<: *coder, api_base: "http://10.0.0.8:8000"}}
    model_info: *described
  - model_name: small
    litellm_params: {{model: ollama/llama3, api_base: "http://10.0.0.9:11434"}}
  - model_name: cloud
    litellm_params:
      model: azure/gpt-deployment
      api_base: https://example.openai.azure.com
      api_version: "2024-10-21"
      api_key: {SECRET}
    model_info: {{base_model: gpt-5}}
  - model_name: vertex
    litellm_params: {{model: vertex_ai/gemini, vertex_credentials: {SECRET}}}
  - model_name: "*"
    litellm_params: {{model: "openai/*"}}
litellm_settings:
  fallbacks: [{{coder: [gpt-5, vertex]}}]
  drop_params: true
router_settings:
  model_group_alias: {{default: coder, fast: {{model: gpt-5, hidden: true}}, small: coder}}
general_settings: {{master_key: {SECRET}}}
"""
PRICES: dict[str, Any] = {
    "sample_spec": {"input_cost_per_token": 0},
    "gpt-5": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
        "supports_vision": True,
    },
    "text-embedding-3-small": {"litellm_provider": "openai", "mode": "embedding"},
    "bedrock/model": {"litellm_provider": "bedrock", "mode": "chat"},
}


@pytest.fixture
def migrant(newcomer: Operator) -> Operator:
    """Somebody who has LiteLLM's files in an empty directory."""
    (newcomer.directory / "config.yaml").write_text(CONFIG, encoding="utf-8")
    prices = newcomer.directory / "model_prices_and_context_window.json"
    prices.write_text(json.dumps(PRICES), encoding="utf-8")
    newcomer.secrets.append(SECRET)
    return newcomer


def test_the_command_of_the_guide_writes_a_catalog(migrant: Operator) -> None:
    (command,) = scripts(GUIDE)

    told = migrant.bash(command)

    tree = tomllib.loads((migrant.directory / "models.toml").read_text(encoding="utf-8"))
    assert tree["backends"] == {
        "openai": {
            "replicas": ["https://api.openai.com/v1"],
            "api_key_variable": "COMPANY_OPENAI_KEY",
            "health_path": "/v1/models",
            "bills_without_answer": True,
            "takes": ["prompt_cache_key"],
        },
        "vllm": {
            "replicas": ["http://10.0.0.7:8000/v1", "http://10.0.0.8:8000/v1"],
            "takes": ["cache_salt", "continuous_usage_stats"],
            "counts_tokens_by": "messages",
            "counts_exactly": True,
            "total_seconds": 300,
        },
        "ollama": {"replicas": ["http://10.0.0.9:11434/v1"]},
        "azure": {
            "replicas": ["https://example.openai.azure.com"],
            "dialect": "azure",
            "api_version": "2024-10-21",
            "api_key_variable": "AZURE_API_KEY_2",
            "bills_without_answer": True,
        },
    }
    assert tree["models"]["coder"] == {
        "backend": "vllm",
        "upstream_model": "Qwen/Qwen3-Coder",
        "context_length": 131_072,
        "max_output_length": 32_768,
        "features": ["tools"],
        "pricing": {"prompt": "0.0000002", "completion": "0.0000008"},
        "fallbacks": ["gpt-5"],
        "aliases": ["default"],
    }
    assert tree["models"]["gpt-5"]["pricing"] == {
        "prompt": "0.00000125",
        "completion": "0.00001",
        "input_cache_read": "0.000000125",
    }
    assert tree["models"]["gpt-5"]["aliases"] == ["fast"]
    assert tree["models"]["cloud"]["context_length"] == 272_000
    for part in (
        *("gap: models.small: pricing", "vertex: Tollhouse has no backend", "*: a wildcard"),
        *("cloud: api_key: a credential is never copied", "fallbacks of coder: 'vertex'"),
        *("alias small: a model has this name", "gpt-5: rpm: limit", "general_settings: keys"),
    ):
        assert part in told.stderr
    assert SECRET not in told.stdout + told.stderr + repr(tree)


def test_a_gap_is_refused_at_start_until_it_is_filled(migrant: Operator) -> None:
    shown = migrant.json("models", "import", "config.yaml")
    tree = tomllib.loads(shown["toml"])
    only = {"backends": tree["backends"], "models": {"small": tree["models"]["small"]}}

    assert {"table": "models.small", "setting": "pricing"} in shown["gaps"]
    assert "# GAP: pricing" in shown["toml"]
    with pytest.raises(InvalidCatalog, match="small"):
        _parse(only)
    only["models"]["small"] |= {
        "context_length": 8192,
        "max_output_length": 4096,
        "pricing": {"prompt": "0", "completion": "0"},
    }
    assert _parse(only).models["small"].upstream_model == "llama3"


def test_a_price_map_alone_is_mapped_by_its_names(migrant: Operator) -> None:
    file = "model_prices_and_context_window.json"
    shown = migrant.json("models", "import", file)
    chosen = migrant.json("models", "import", file, "--model", "gpt-5", "--model", "gpt-x")

    assert shown["models"] == chosen["models"] == ["gpt-5"]
    assert {each["item"] for each in shown["not_mapped"]} == {
        "text-embedding-3-small",
        "bedrock/model",
    }
    assert [each["item"] for each in chosen["not_mapped"]] == ["gpt-x"]
    assert _parse(tomllib.loads(shown["toml"])).models["gpt-5"].context_length == 272_000


def test_what_cannot_be_read_is_refused_without_its_content(migrant: Operator) -> None:
    bad = migrant.directory / "bad.yaml"
    for text in (
        f"model_list: [{SECRET}",
        f"- {SECRET}",
        f"x: {SECRET}",
        f"!!python/name:{SECRET}",
    ):
        bad.write_text(text, encoding="utf-8")
        refused = migrant.run("models", "import", "bad.yaml", "--json", exit_code=1)
        assert refused.error["code"] == "import_unreadable"
        assert SECRET not in refused.stderr
    (migrant.directory / "there.toml").write_text("kept", encoding="utf-8")
    arguments = ("models", "import", "config.yaml", "--output", "there.toml", "--json")
    refused = migrant.run(*arguments, exit_code=1)
    assert refused.error["code"] == "import_unreadable"
    assert (migrant.directory / "there.toml").read_text(encoding="utf-8") == "kept"


def test_half_of_a_surrogate_pair_is_refused_and_leaves_no_file(migrant: Operator) -> None:
    name = '"s\\ud800"'
    for text in (
        f"model_list: [{{model_name: {name}, litellm_params: {{model: openai/gpt-5}}}}]",
        f"model_list: []\n{name}: 1",
    ):
        (migrant.directory / "odd.yaml").write_text(text, encoding="utf-8")
        for more in ((), ("--output", "odd.toml")):
            refused = migrant.run("models", "import", "odd.yaml", *more, "--json", exit_code=1)
            assert refused.error["code"] == "import_unreadable"
            assert "surrogate" in refused.error["message"]
    assert not (migrant.directory / "odd.toml").exists()


def test_a_file_that_cannot_be_written_whole_does_not_stay(migrant: Operator) -> None:
    command = "tollhouse models import config.yaml --output"
    # In a process of its own: a fork has the limits of the forker.
    whole = command.replace("tollhouse", migrant.tollhouse, 1)
    full = migrant.bash(f"(ulimit -f 0; {whole} models.toml) || true")
    nowhere = migrant.bash(f"{command} missing/models.toml || true")
    again = migrant.bash(f"{command} models.toml")

    assert "models.toml cannot be written: File too large" in full.stderr
    assert "models.toml cannot be written: No such file or directory" in nowhere.stderr
    assert "models on" in again.stderr


def test_without_the_extra_yaml_is_refused_with_a_sentence(
    migrant: Operator, tmp_path: Path
) -> None:
    shadow = tmp_path / "shadow" / "yaml"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ModuleNotFoundError('yaml')", encoding="utf-8")
    migrant.environment["PYTHONPATH"] = str(shadow.parent)
    refused = migrant.bash("tollhouse models import config.yaml || true")

    assert "Install tollhouse[import]" in refused.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((1e-06, "0.000001"), ("1e-06", "0.000001"), (2.5e-07, "0.00000025"), (0, "0")),
        *((1e-13, None), (-1e-06, None), (float("nan"), None), (True, None), ("free", None)),
        *((None, None), ("1e99999999", None), ("Infinity", None)),
        pytest.param(16**5000, None, id="thousands of digits"),
        *(("-0", "0"), (-0.0, "0"), ("-0E-20", "0"), ("100", "100")),
    ],
)
def test_a_price_is_exact_or_none(value: object, text: str | None) -> None:
    assert price_text(value) == text


@pytest.mark.parametrize(
    "address",
    ["https://user:pw@host/v1", "https://host/v1?key=x", "os.environ/BASE", "ftp://host", 7, ""],
)
def test_an_address_that_could_have_a_secret_is_a_gap(address: object) -> None:
    parameters = {"model": "openai/gpt-5", "api_base": address}
    found = from_config({"model_list": [{"model_name": "m", "litellm_params": parameters}]}, {})

    assert "replicas" in found.backends["openai"].gaps
    assert str(address) not in found.toml() or address == ""


def test_prices_that_we_do_not_have_are_named() -> None:
    unoffered = {"input_cost_per_token_batches": 6e-07, "output_cost_per_token_flex": 5e-06}
    dearer = {"input_cost_per_token_above_200k_tokens": 2.5e-06}
    entry = {**PRICES["gpt-5"], **unoffered, **dearer}
    searched = {"search_context_cost_per_query": 0.01}
    found = from_price_map({"gpt-5": {**dearer, **entry, **searched}}, ())

    assert [each.item for each in found.unmapped] == [
        "gpt-5: search_context_cost_per_query",
        "gpt-5: input_cost_per_token_above_200k_tokens",
    ]
    assert found.models["gpt-5"].settings["pricing"]["prompt"] == "0.0000025"


def test_a_tier_that_is_not_dearer_changes_nothing() -> None:
    entry = {**PRICES["gpt-5"], "output_cost_per_token_above_200k_tokens": 1e-12}
    found = from_price_map({"gpt-5": entry}, ())

    assert found.unmapped == []
    assert found.models == from_price_map({"gpt-5": PRICES["gpt-5"]}, ()).models


@pytest.mark.parametrize("mode", [["chat"], {"chat": 1}, 1, "embedding"])
def test_a_mode_that_is_not_chat_is_listed(mode: object) -> None:
    entry = {**PRICES["gpt-5"], "mode": mode}
    parameters = {"model_name": "gpt-5", "litellm_params": {"model": "openai/gpt-5"}}
    by_name = from_price_map({"gpt-5": entry}, ())
    by_entry = from_config({"model_list": [parameters]}, {"gpt-5": entry})

    for found in (by_name, by_entry):
        assert found.models == {}
        assert [each.reason for each in found.unmapped] == ["its mode is not chat"]


def test_tokens_for_0_with_another_price_are_a_gap_and_not_free() -> None:
    tokens = {"input_cost_per_token": 0, "output_cost_per_token": 0}
    base = {**PRICES["gpt-5"], "cache_read_input_token_cost": 0, **tokens}
    entries = {
        "openai/free": base,
        "openai/also-free": {**base, "input_cost_per_second": 0},
        "openai/by-second": {**base, "input_cost_per_second": 0.5},
        "openai/inexact": {**base, "output_cost_per_reasoning_token": 1e-13},
        "openai/by-output": {**base, "output_cost_per_token": 1e-06, "input_cost_per_second": 0.5},
    }
    found = from_price_map(entries, ())

    gaps = [name for name, model in found.models.items() if "pricing" in model.gaps]
    assert gaps == ["openai/by-second", "openai/inexact"]
    for name, model in found.models.items():
        assert ("pricing" in model.settings) is (name not in gaps)


def test_a_fallback_with_parameters_is_listed_without_them() -> None:
    model = {"model_name": "m", "litellm_params": {"model": "openai/gpt-5"}}
    fallback = {"model": "m2", "api_key": SECRET}
    settings = {"fallbacks": [{"m": [fallback]}]}
    found = from_config({"model_list": [model], "litellm_settings": settings}, PRICES)

    assert [each.item for each in found.unmapped] == ["fallbacks of m"]
    assert SECRET not in repr(found)


def test_a_model_of_anthropic_speaks_messages_and_has_a_price_of_cache_writes() -> None:
    name = "anthropic/claude-example"
    entry = {
        "litellm_provider": "anthropic",
        "mode": "chat",
        "max_input_tokens": 200_000,
        "max_output_tokens": 64_000,
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
        "cache_creation_input_token_cost": 3.75e-06,
        "supports_function_calling": True,
        "supports_response_schema": True,
        "supports_reasoning": True,
    }
    found = from_price_map({name: entry}, ())

    assert found.unmapped == []
    parsed = _parse(tomllib.loads(found.toml()))
    assert parsed.backends["anthropic"].dialect == "anthropic"
    assert parsed.backends["anthropic"].replicas == ("https://api.anthropic.com/v1",)
    model = parsed.models[name]
    assert model.upstream_model == "claude-example"
    assert model.features == {"tools", "structured_outputs", "reasoning"}
    assert model.pricing.input_cache_write == "0.00000375"


def test_two_credentials_of_one_provider_get_two_variables() -> None:
    entries = [
        {"model_name": f"m{n}", "litellm_params": {"model": "openai/x", "api_key": f"{SECRET}{n}"}}
        for n in range(2)
    ]
    found = from_config({"model_list": entries}, {})

    variables = [table.settings["api_key_variable"] for table in found.backends.values()]
    assert variables == ["OPENAI_API_KEY_2", "OPENAI_API_KEY_3"]
    assert SECRET not in repr(found) + found.toml()


def test_a_credential_in_the_file_never_gets_the_variable_of_another() -> None:
    """Another server would receive the other credential."""
    cloud = {"model": "openai/gpt-4o", "api_key": "os.environ/OPENAI_API_KEY"}
    local = {"model": "openai/qwen", "api_base": "http://third.party:8000/v1", "api_key": SECRET}
    like = {**local, "model": "openai_like/qwen"}
    usual = {"model": "openai/gpt-4o-mini"}
    entries = {"local": local, "like": like, "cloud": cloud, "usual": usual, "same": local}
    found = from_config(
        {
            "model_list": [
                {"model_name": name, "litellm_params": parameters}
                for name, parameters in entries.items()
            ],
            "general_settings": {"master_key": "os.environ/OPENAI_API_KEY_2"},
            "environment_variables": {"OPENAI_COMPATIBLE_API_KEY": SECRET},
        },
        {},
    )

    variables = {
        name: found.backends[model.settings["backend"]].settings["api_key_variable"]
        for name, model in found.models.items()
    }
    assert variables == {
        "local": "OPENAI_API_KEY_3",
        "like": "OPENAI_COMPATIBLE_API_KEY_2",
        "cloud": "OPENAI_API_KEY",
        "usual": "OPENAI_API_KEY",
        "same": "OPENAI_API_KEY_3",
    }
    assert any("OPENAI_API_KEY_3" in each.reason for each in found.unmapped)


def test_the_credential_of_a_provider_goes_to_no_other_address() -> None:
    foreign = {"model": "openai/qwen", "api_base": "http://third.party:8000/v1"}
    entries = {"foreign": foreign, "own": {"model": "openai/gpt-4o"}}
    found = from_config(
        {
            "model_list": [
                {"model_name": name, "litellm_params": parameters}
                for name, parameters in entries.items()
            ]
        },
        {},
    )

    variables = {
        name: found.backends[model.settings["backend"]].settings.get("api_key_variable")
        for name, model in found.models.items()
    }
    assert variables == {"foreign": None, "own": "OPENAI_API_KEY"}
    (note,) = [each for each in found.unmapped if each.item == "foreign: api_key"]
    assert "OPENAI_API_KEY" in note.reason


def test_a_file_that_contains_itself_is_read_once() -> None:
    circle: dict[str, Any] = {"api_key": "os.environ/AZURE_API_KEY_2"}
    circle["itself"] = [circle]
    parameters = {"model": "azure/x", "api_key": SECRET}
    found = from_config(
        {"model_list": [{"model_name": "m", "litellm_params": parameters}], "circle": circle}, {}
    )

    assert found.backends["azure"].settings["api_key_variable"] == "AZURE_API_KEY_3"


def test_a_price_of_another_provider_is_not_taken() -> None:
    """Whoever runs the model of a provider does not charge what the provider does."""
    prices = {
        "sold": {**PRICES["gpt-5"], "litellm_provider": "deepseek"},
        "xai/both": {**PRICES["gpt-5"], "litellm_provider": "xai"},
    }
    names = ("deepseek/sold", "hosted_vllm/sold", "openai/sold", "xai/both", "groq/both")
    entries = [{"model_name": name, "litellm_params": {"model": name}} for name in names]
    found = from_config({"model_list": entries}, prices)

    priced = {name for name, model in found.models.items() if "pricing" in model.settings}
    assert priced == {"deepseek/sold", "xai/both"}
    for name in found.models.keys() - priced:
        assert {"pricing", "context_length", "max_output_length"} <= found.models[name].gaps.keys()


@pytest.mark.parametrize(
    ("model", "info", "lengths", "gaps"),
    [
        ("openai/x", (128_000, 16_384), (128_000, 16_384), set[str]()),
        ("azure/x", (128_000, 16_384), (128_000, 16_384), set[str]()),
        ("anthropic/x", (200_000, 64_000), (200_000, 64_000), set[str]()),
        ("groq/x", (8_192, 32_768), (8_192, 8_192), set[str]()),
        ("xai/x", (8_192, None), (8_192, None), {"max_output_length"}),
        ("xai/x", (None, 4_096), (None, 4_096), {"context_length"}),
        ("hosted_vllm/x", (98_304, 32_768), (131_072, 32_768), set[str]()),
        ("hosted_vllm/x", (98_304, None), (None, None), {"context_length", "max_output_length"}),
    ],
)
def test_the_longest_prompt_of_a_hosted_model_is_its_context(
    model: str,
    info: tuple[int | None, int | None],
    lengths: tuple[int | None, int | None],
    gaps: set[str],
) -> None:
    entry = {
        "model_name": "m",
        "litellm_params": {"model": model},
        "model_info": dict(zip(("max_input_tokens", "max_output_tokens"), info, strict=True)),
    }
    found = from_config({"model_list": [entry]}, {}).models["m"]

    written = found.settings.get("context_length"), found.settings.get("max_output_length")
    assert written == lengths
    assert found.gaps.keys() - {"pricing"} == gaps


DEPLOYMENT: dict[str, Any] = {
    "model": "azure/deployed",
    "api_base": "https://one.example",
    "api_version": "2024-10-21",
    "api_key": "os.environ/COMPANY_KEY",
    "timeout": 60,
    "input_cost_per_token": 1e-06,
    "output_cost_per_token": 2e-06,
}
DESCRIPTION: dict[str, Any] = {"max_input_tokens": 1000, "max_output_tokens": 100}


def _twice(parameters: dict[str, Any], info: dict[str, Any]) -> ImportedCatalog:
    """Two deployments of one model: the second has other parameters and information."""
    second = {**DEPLOYMENT, "api_base": "https://two.example", **parameters}
    pairs = ((DEPLOYMENT, DESCRIPTION), (second, {**DESCRIPTION, **info}))
    entries = [
        {"model_name": "m", "litellm_params": given, "model_info": known} for given, known in pairs
    ]
    return from_config({"model_list": entries}, {})


@pytest.mark.parametrize(
    ("parameters", "info"),
    [
        ({"input_cost_per_token": 5e-06}, {}),
        ({"cache_read_input_token_cost": 1e-07}, {}),
        ({"timeout": 61}, {}),
        ({"timeout": None}, {}),
        ({"api_version": "2025-01-01"}, {}),
        ({"api_version": "os.environ/VERSION"}, {}),
        ({"api_key": "os.environ/OTHER_KEY"}, {}),
        ({"api_key": SECRET}, {}),
        ({"model": "azure/other"}, {}),
        ({"model": "openai/deployed"}, {}),
        ({"model": "custom_openai/deployed"}, {}),
        ({"api_base": "os.environ/BASE"}, {}),
        ({}, {"max_input_tokens": 2000}),
        ({}, {"supports_vision": True}),
        ({}, {"input_cost_per_token": None, "supports_function_calling": True}),
    ],
)
def test_a_deployment_that_differs_is_listed_and_no_replica(
    parameters: dict[str, Any], info: dict[str, Any]
) -> None:
    alone = from_config(
        {
            "model_list": [
                {"model_name": "m", "litellm_params": DEPLOYMENT, "model_info": DESCRIPTION}
            ]
        },
        {},
    )
    found = _twice(parameters, info)

    assert found.toml() == alone.toml()
    (listed,) = found.unmapped
    assert listed.item == "m"
    assert "a further deployment that differs" in listed.reason


def test_a_deployment_with_another_address_is_a_replica_and_its_rest_is_listed() -> None:
    found = _twice({"rpm": 60, "tags": ["x"]}, {"id": "second", "mode": "chat"})

    replicas = ["https://one.example", "https://two.example"]
    assert {name: table.settings["replicas"] for name, table in found.backends.items()} == {
        "azure": replicas
    }
    assert [each.item for each in found.unmapped] == ["m: rpm", "m: tags"]


def test_a_replica_of_one_model_is_none_of_another_on_the_same_backend() -> None:
    second = {**DEPLOYMENT, "api_base": "https://two.example"}
    entries = [
        {"model_name": name, "litellm_params": given, "model_info": DESCRIPTION}
        for name, given in (("a", DEPLOYMENT), ("b", DEPLOYMENT), ("a", second), ("a", second))
    ]
    found = from_config({"model_list": entries}, {})

    assert list(found.models) == ["a", "b"]
    replicas = {
        name: found.backends[model.settings["backend"]].settings["replicas"]
        for name, model in found.models.items()
    }
    assert replicas == {
        "a": ["https://one.example", "https://two.example"],
        "b": ["https://one.example"],
    }


@pytest.mark.parametrize(
    "timeout", [0.5, 86_401, "soon", [60], math.inf, math.nan, -math.inf, 10**400, "9" * 5000]
)
def test_a_timeout_that_is_no_number_of_seconds_is_listed(timeout: object) -> None:
    parameters = {**DEPLOYMENT, "timeout": timeout}
    entry = {"model_name": "m", "litellm_params": parameters, "model_info": DESCRIPTION}
    found = from_config({"model_list": [entry]}, {})

    assert "total_seconds" not in found.backends["azure"].settings
    assert [each.item for each in found.unmapped] == ["m: timeout"]


def test_names_are_quoted_as_toml_wants_it() -> None:
    name = 'team/"odd"\n\x7f model'
    entry = {"model_name": name, "litellm_params": {"model": "openai/gpt-5"}}
    catalog = from_config({"model_list": [entry]}, PRICES)

    assert list(tomllib.loads(catalog.toml())["models"]) == [name]


def _parse(tree: dict[str, Any]) -> Any:  # noqa: ANN401 - a catalog
    backends = {
        name: {key: value for key, value in table.items() if key != "api_key_variable"}
        for name, table in tree["backends"].items()
    }
    return rules.parse(backends, tree["models"], {})
