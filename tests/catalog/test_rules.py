"""The catalog: all of it is sound, or it is refused by the path of what is wrong."""

import datetime as dt
import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.catalogs import BACKENDS, MODELS, Tables, backend, model
from tollhouse.base.money import PicoUsd, to_decimal_string
from tollhouse.catalog import pricing, rules
from tollhouse.catalog.errors import InvalidCatalog
from tollhouse.catalog.types import Backend, Model, Pricing

A = 'models."example/model-a"'
E = 'backends."engine"'
AZURE = {
    "dialect": "azure",
    "api_version": "2024-10-21",
    "replicas": ["https://a.openai.azure.com"],
}
BLIND = "only for a model that has 'image' among its input_modalities"


def refusal(backends: Tables = BACKENDS, models: Tables = MODELS) -> str:
    with pytest.raises(InvalidCatalog) as refused:
        rules.parse(backends, models)
    return str(refused.value)


def parsed(models: Tables, backends: Tables = BACKENDS) -> Model:
    return rules.parse(backends, models).models["example/model-a"]


def test_an_empty_catalog_is_sound() -> None:
    catalog = rules.parse({}, {})

    assert (dict(catalog.backends), dict(catalog.models)) == ({}, {})


def test_a_minimal_catalog_is_completed_by_defaults() -> None:
    catalog = rules.parse(BACKENDS, MODELS)

    engine, offered = catalog.backends["engine"], catalog.models["example/model-a"]
    assert engine.replicas == ("http://127.0.0.1:8000/v1",)
    assert (engine.health_path, engine.api_key, engine.bills_without_answer) == (
        "/health",
        None,
        False,
    )
    assert offered.input_modalities == ("text",)
    assert offered.effort_names == {"ultracode": "xhigh"}
    assert offered.required_checks == ()


def test_azure_is_asked_for_its_models_unless_another_path_is_named() -> None:
    usual = rules.parse(backend(**AZURE), {}).backends["engine"]
    other = rules.parse(backend(**AZURE, health_path="/status"), {}).backends["engine"]

    assert usual.health_path == "/openai/models?api-version=2024-10-21"
    assert other.health_path == "/status"


def test_a_model_on_anthropic_declares_only_what_that_dialect_has() -> None:
    anthropic = backend(dialect="anthropic")

    assert parsed(MODELS, anthropic).sampling_parameters == {"stop", "temperature", "top_p"}
    assert rules.parse(anthropic, {}).backends["engine"].health_path == "/v1/models"
    for refused, words in {
        f"{A}.features": model(features=["tools", "json_mode"]),
        f"{A}.sampling_parameters": model(sampling_parameters=["seed"]),
        f"{A}.input_modalities": model(input_modalities=["text", "audio"]),
        f"{A}.output_modalities": model(output_modalities=["text", "image"]),
    }.items():
        assert refusal(anthropic, words).startswith(f"{refused}: the dialect 'anthropic' has no")


def test_a_host_of_azure_may_have_any_name() -> None:
    replicas = ["https://openai-eastus.openai.azure.com", "https://proxy.example/my/openai-proxy"]

    assert rules.parse(backend(**AZURE | {"replicas": replicas}), {})


def test_anthropic_reports_output_at_the_end_and_is_read_to_it_by_default() -> None:
    def parsed_backend(**values: object) -> Backend:
        return rules.parse(backend(**values), {}).backends["engine"]

    assert not parsed_backend(dialect="anthropic").stops_when_cancelled
    assert parsed_backend(dialect="anthropic", stops_when_cancelled=True).stops_when_cancelled
    assert parsed_backend().stops_when_cancelled


def test_a_judge_needs_log_probabilities() -> None:
    judge = {"backend": "engine", "model": "m", "context_length": 8_000}

    with pytest.raises(InvalidCatalog, match="log probabilities"):
        rules.parse(backend(dialect="anthropic"), {}, judge)


def test_a_model_says_all_that_it_can_say() -> None:
    text = """
    [backends.vllm]
    replicas = ["https://a.example/v1", "https://b.example/v1/"]
    takes = ["cache_salt"]
    connect_seconds = 2

    [models."org/vision"]
    backend = "vllm"
    upstream_model = "vision-7b"
    context_length = 32768
    max_output_length = 32768
    tokenizer = "nfc"
    template_tokens = 40
    input_modalities = ["text", "image"]
    image_tokens = 576
    features = ["cache_salt", "reasoning", "reasoning_budget", "tools"]
    sampling_parameters = ["logprobs", "top_logprobs"]
    sampling_limits = { temperature = { min = 0.0, max = 1.5 }, stop = ["a", "b"] }
    required_checks = ["identity", "export-control.2026"]
    quantization = "fp8"
    pricing = { prompt = "0", completion = "1", image = "0.000000000001", reasoning = "2" }
    """
    tree = tomllib.loads(text)

    catalog = rules.parse(tree["backends"], tree["models"])

    assert catalog.backends["vllm"].replicas == ("https://a.example/v1", "https://b.example/v1")
    assert catalog.models["org/vision"].required_checks == ("identity", "export-control.2026")


REFUSED_MODELS: dict[str, tuple[Tables, str]] = {
    "no price": (model(pricing=None), f"{A}: Object missing required field `pricing`"),
    "no prompt price": (
        model(pricing__prompt=None),
        f"{A}.pricing: Object missing required field `prompt`",
    ),
    "no completion price": (model(pricing__completion=None), f"{A}.pricing: "),
    "no context": (model(context_length=None), f"{A}: Object missing"),
    "no output length": (model(max_output_length=None), f"{A}: Object missing"),
    "no backend": (model(backend=None), f"{A}: Object missing"),
    "a price that is a float": (
        model(pricing__prompt=0.5),
        f"{A}.pricing.prompt: Expected `str`, got `float`",
    ),
    "a price that is an integer": (model(pricing__prompt=1), f"{A}.pricing.prompt: "),
    "an unknown backend": (
        model(backend="engin"),
        f"{A}.backend: there is no such backend. Did you mean `engine`?",
    ),
    "a backend like no other": (model(backend="x"), f"{A}.backend: there is no such backend"),
    "an alias that is a model": (
        model(aliases=["example/model-a"]),
        f"{A}.aliases[0]: there is a model with this ID",
    ),
    "an alias twice": (model(aliases=["x", "x"]), f"{A}.aliases[1]: also an alias in {A}"),
    "an unprintable alias": (
        model(aliases=["x\n"]),
        f"{A}.aliases[0]: an alias has printable characters only",
    ),
    "an unknown fallback": (
        model(fallbacks=["example/model-b"]),
        f"{A}.fallbacks[0]: there is no such model. Did you mean `example/model-a`?",
    ),
    "itself as fallback": (
        model(fallbacks=["example/model-a"]),
        f"{A}.fallbacks[0]: the model itself",
    ),
    "more output by default than at most": (
        model(default_output_tokens=4097),
        f"{A}.default_output_tokens: more than max_output_length",
    ),
    "an output longer than the context": (
        model(max_output_length=4097),
        f"{A}.max_output_length: more than context_length",
    ),
    "a misspelt field": (
        model(contxt_length=1),
        f"{A}: Object contains unknown field `contxt_length`. Did you mean `context_length`?",
    ),
    "a misspelt price": (
        model(pricing__promt="1"),
        f"{A}.pricing: Object contains unknown field `promt`. Did you mean `prompt`?",
    ),
    "no modality": (model(input_modalities=[]), f"{A}.input_modalities: at least one"),
    "nothing to put out": (model(output_modalities=[]), f"{A}.output_modalities: at least one"),
    "a modality twice": (
        model(input_modalities=["text", "text"]),
        f"{A}.input_modalities: contains a value twice",
    ),
    "an output twice": (
        model(output_modalities=["text", "text"]),
        f"{A}.output_modalities: contains",
    ),
    "an unknown modality": (
        model(input_modalities=["smell"]),
        f"{A}.input_modalities[0]: Invalid enum value 'smell'",
    ),
    "tokens of images that it cannot see": (model(image_tokens=1), f"{A}.image_tokens: {BLIND}"),
    "a price of images that it cannot see": (
        model(pricing__image="1"),
        f"{A}.pricing.image: {BLIND}",
    ),
    "tokens of a template without a tokenizer": (
        model(template_tokens=32),
        f"{A}.template_tokens: needs tokenizer",
    ),
    "fewer tokens than none of a template": (
        model(template_tokens=-1, tokenizer="bytes"),
        f"{A}.template_tokens: Expected `int` >= 0",
    ),
    "no tokens per image": (
        model(image_tokens=0, input_modalities=["image"]),
        f"{A}.image_tokens: Expected `int` >= 1",
    ),
    "top_logprobs alone": (
        model(sampling_parameters=["top_logprobs"]),
        f"{A}.sampling_parameters: 'top_logprobs' needs 'logprobs'",
    ),
    "a budget without reasoning": (
        model(features=["reasoning_budget"]),
        f"{A}.features: 'reasoning_budget' needs 'reasoning'",
    ),
    "a salt for a backend that takes none": (
        model(features=["cache_salt"]),
        f"{A}.features: 'cache_salt' needs a backend that takes it",
    ),
    "an unknown feature": (model(features=["telepathy"]), f"{A}.features[0]: Invalid enum value"),
    "an unknown parameter": (model(sampling_parameters=["top_q"]), f"{A}.sampling_parameters[0]: "),
    "an unknown effort": (model(effort_names={"huge": "max"}), f"{A}.effort_names: Invalid enum"),
    "an empty effort": (model(effort_names={"high": ""}), f"{A}.effort_names[...]: Expected `str`"),
    "an unknown quantization": (model(quantization="q4"), f"{A}.quantization: Invalid enum"),
    "an unknown tokenizer": (model(tokenizer="bpe"), f"{A}.tokenizer: Invalid enum value"),
    "a check twice": (
        model(required_checks=["kyc", "kyc"]),
        f"{A}.required_checks: contains a value",
    ),
    "a check with a space": (model(required_checks=["k y c"]), f"{A}.required_checks[0]: "),
    "a check in capitals": (model(required_checks=["KYC"]), f"{A}.required_checks[0]: "),
    "an empty check": (model(required_checks=[""]), f"{A}.required_checks[0]: "),
    "a long check": (model(required_checks=["x" * 101]), f"{A}.required_checks[0]: "),
    "no context at all": (model(context_length=0), f"{A}.context_length: Expected `int` >= 1"),
    "a context beyond reason": (model(context_length=10**9 + 1), f"{A}.context_length: "),
    "a context beyond numbers": (model(context_length=10**30), f"{A}.context_length: "),
    "a context as text": (model(context_length="4096"), f"{A}.context_length: Expected `int`"),
    "a context with a fraction": (model(context_length=4096.0), f"{A}.context_length: "),
    "a creation before 1970": (model(created=-1), f"{A}.created: "),
    "a creation after 9999": (model(created=253_402_300_800), f"{A}.created: "),
    "no name": (model(display_name=""), f"{A}.display_name: "),
    "an endless name": (model(display_name="x" * 201), f"{A}.display_name: "),
    "no upstream name": (model(upstream_model=""), f"{A}.upstream_model: "),
}


@pytest.mark.parametrize(("models", "words"), REFUSED_MODELS.values(), ids=REFUSED_MODELS)
def test_a_model_is_refused_by_the_path_of_what_is_wrong(models: Tables, words: str) -> None:
    assert refusal(models=models).startswith(words)


REFUSED_BACKENDS: dict[str, tuple[Tables, str]] = {
    "no replicas": (backend(replicas=None), f"{E}: Object missing required field `replicas`"),
    "an empty list of replicas": (backend(replicas=[]), f"{E}.replicas: Expected `array`"),
    "too many replicas": (
        backend(replicas=[f"http://10.0.0.1:{port}" for port in range(1, 1002)]),
        f"{E}.replicas: Expected `array` of length <= 1000",
    ),
    "a replica that is no text": (backend(replicas=[1]), f"{E}.replicas[0]: Expected `str`"),
    "a misspelt field": (
        backend(api_key_varable="X"),
        f"{E}: Object contains unknown field `api_key_varable`. Did you mean `api_key_variable`?",
    ),
    "a short name for a credential": (
        backend(apikey="X"),
        f"{E}: Object contains unknown field `apikey`. Did you mean `api_key_",
    ),
    "a health path without a slash": (backend(health_path="health"), f"{E}.health_path: expected"),
    "an empty health path": (backend(health_path=""), f"{E}.health_path: "),
    "a health path with a space": (backend(health_path="/he alth"), f"{E}.health_path: expected"),
    "a health path with a fragment": (backend(health_path="/#x"), f"{E}.health_path: expected"),
    "a health path with a line break": (backend(health_path="/x\r\ny"), f"{E}.health_path: "),
    "an unknown extra": (backend(takes=["salt"]), f"{E}.takes[0]: Invalid enum value"),
    "an unknown counter": (backend(counts_tokens_by="hand"), f"{E}.counts_tokens_by: "),
    "an exact count by nobody": (
        backend(counts_exactly=True),
        f"{E}.counts_exactly: needs counts_tokens_by",
    ),
    "an unknown dialect": (backend(dialect="cohere"), f"{E}.dialect: Invalid enum value"),
    "a version without its dialect": (
        backend(api_version="2024-10-21"),
        f"{E}.api_version: only for the dialect 'azure'",
    ),
    "azure without a version": (
        backend(dialect="azure"),
        f"{E}.api_version: needed for the dialect 'azure', such as '2024-10-21'",
    ),
    "a version that would change the query": (
        backend(dialect="azure", api_version="1&x=2"),
        f"{E}.api_version: Expected `str` matching regex",
    ),
    "azure with a path that would be there twice": (
        backend(**AZURE | {"replicas": ["https://a.openai.azure.com/openai/v1"]}),
        f"{E}.replicas[0]: the dialect 'azure' appends /openai/deployments/DEPLOYMENT",
    ),
    "azure that counts": (
        backend(**AZURE, counts_tokens_by="messages"),
        f"{E}.counts_tokens_by: the dialect 'azure' counts no tokens",
    ),
    "anthropic without a path": (
        backend(dialect="anthropic", replicas=["https://api.anthropic.com"]),
        f"{E}.replicas[0]: the dialect 'anthropic' appends /messages",
    ),
    "anthropic that takes more": (
        backend(dialect="anthropic", takes=["cache_salt"]),
        f"{E}.takes: only for the dialects 'openai' and 'azure'",
    ),
    "anthropic that thinks outside its bound": (
        backend(dialect="anthropic", reasons_outside_bound=True),
        f"{E}.reasons_outside_bound: the output bound of the dialect 'anthropic' includes",
    ),
    "anthropic with another counter": (
        backend(dialect="anthropic", counts_tokens_by="tokenize"),
        f"{E}.counts_tokens_by: the dialect 'anthropic' counts by 'messages'",
    ),
    "anthropic with a version in its settings": (
        backend(dialect="anthropic", api_version="2023-06-01"),
        f"{E}.api_version: only for the dialect 'azure'",
    ),
    "no connections": (backend(connections_max=0), f"{E}.connections_max: Expected `int` >= 1"),
    "no time": (backend(idle_seconds=0), f"{E}.idle_seconds: Expected `float` > 0"),
    "endless time": (backend(total_seconds=math.inf), f"{E}.total_seconds: "),
    "a time that is none": (backend(total_seconds=math.nan), f"{E}.total_seconds: "),
    "a word for a truth": (backend(bills_without_answer="no"), f"{E}.bills_without_answer: "),
    "a name with a space": (
        {"my engine": BACKENDS["engine"]},
        'backends."my engine": a name has 1 to 64',
    ),
    "an empty name": ({"": BACKENDS["engine"]}, 'backends."": a name has'),
    "a name with a sign first": ({"-x": BACKENDS["engine"]}, 'backends."-x": a name has'),
    "a long name": ({"x" * 65: BACKENDS["engine"]}, f'backends."{"x" * 65}": a name has'),
    "a name with a line break": ({"x\n": BACKENDS["engine"]}, 'backends."x\\n": a name has'),
}


@pytest.mark.parametrize(("backends", "words"), REFUSED_BACKENDS.values(), ids=REFUSED_BACKENDS)
def test_a_backend_is_refused_by_the_path_of_what_is_wrong(backends: Tables, words: str) -> None:
    assert refusal(backends, {}).startswith(words)


SOUND_URLS = (
    "http://127.0.0.1",
    "http://localhost:1",
    "https://api.example.com/v1",
    "https://api.example.com:65535/openai/v1/",
    "http://engine_1:8000/v1",
    "http://[::1]:8000/v1",
    "https://host/a%20path/~x",
)


def test_urls_of_replicas_have_one_form() -> None:
    engine = rules.parse(backend(replicas=list(SOUND_URLS)), {}).backends["engine"]

    assert engine.replicas == tuple(url.rstrip("/") for url in SOUND_URLS)


REFUSED_URLS = {
    "no scheme": "hunter2.example/v1",
    "another scheme": "ftp://hunter2.example/v1",
    "a scheme in capitals": "HTTP://hunter2.example/v1",
    "no host": "http:///hunter2",
    "only a port": "http://:8000/hunter2",
    "a user": "http://hunter2@host/v1",
    "a password": "http://user:hunter2@host/v1",
    "an at sign in a password": "http://user:hunter2@x@host/v1",
    "a query": "http://host/v1?key=hunter2",
    "an empty query": "http://hunter2/v1?",
    "a fragment": "http://host/v1#hunter2",
    "port zero": "http://hunter2:0/v1",
    "a port too many": "http://hunter2:65536/v1",
    "a port of letters": "http://host:hunter2/v1",
    "a space": "http://host/hunter2 x",
    "a line break": "http://host/v1\nhunter2",
    "a line break at the end": "http://hunter2/v1\n",
    "a backslash": "http://host\\hunter2/v1",
    "another script": "http://hunter2.\N{CYRILLIC SMALL LETTER A}/v1",
    "nothing": "",
}


@pytest.mark.guarantee("T34")
@pytest.mark.parametrize("url", REFUSED_URLS.values(), ids=REFUSED_URLS)
def test_a_url_that_could_lead_elsewhere_is_refused_without_being_shown(url: str) -> None:
    said = refusal(backend(replicas=["http://host", url]), {})

    assert said.startswith(f"{E}.replicas[1]: not of the form")
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("http://host/v1", "http://host/v1"),
        ("http://host/v1", "http://host/v1/"),
        ("http://host/v1", "http://HOST/v1"),
        ("http://host", "http://host:80/"),
        ("https://host:443", "https://host"),
    ],
)
def test_a_replica_stands_there_once_however_it_is_spelt(one: str, same: str) -> None:
    said = refusal(backend(replicas=["http://other", one, same]), {})

    assert said == f"{E}.replicas[2]: the same address as [1]"


def test_replicas_without_names_are_named_by_their_backend_and_position() -> None:
    urls = ["http://host/v1", "http://other/v1"]

    (engine,) = rules.parse(backend(replicas=urls), {}).backends.values()

    assert engine.replica_names == ("engine-1", "engine-2")


def test_replicas_have_the_names_that_they_are_given() -> None:
    fields = {"replicas": ["http://host/v1", "http://other/v1"], "replica_names": ["west", "east"]}

    (engine,) = rules.parse(backend(**fields), {}).backends.values()

    assert engine.replica_names == ("west", "east")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["west"], "replica_names: 1 names for 2 replicas"),
        (["west", "west"], "replica_names[1]: the same name as [0]"),
        (["west", "http://10.0.0.7"], "replica_names[1]:"),
    ],
)
def test_names_that_do_not_fit_the_replicas_are_refused(names: list[str], reason: str) -> None:
    urls = ["http://host/v1", "http://other/v1"]

    said = refusal(backend(replicas=urls, replica_names=names), {})

    assert said.startswith(f"{E}.{reason}")


def test_addresses_that_differ_in_anything_are_different_replicas() -> None:
    urls = ["http://host/v1", "https://host/v1", "http://host:81/v1", "http://host/V1"]

    assert len(rules.parse(backend(replicas=urls), {}).backends["engine"].replicas) == 4


REFUSED_PRICES = ("-1", "-0", "+1", "1e-6", "1.", ".1", "", " 1", "1 ", "1,5", "NaN", "٣")
TOO_FINE, TOO_DEAR = "0.0000000000001", "9223372.036854775808"


@pytest.mark.parametrize("name", Pricing.__struct_fields__)
@pytest.mark.parametrize("text", [*REFUSED_PRICES, TOO_FINE, TOO_DEAR])
def test_what_is_no_exact_price_is_refused(name: str, text: str) -> None:
    models = model(**{f"pricing__{name}": text}, input_modalities=["text", "image"])

    assert refusal(models=models).startswith(f"{A}.pricing.{name}: expected US dollars")


@pytest.mark.parametrize("text", ["0", "0.000000000001", "00.10", "9223372.036854775807"])
def test_twelve_decimals_up_to_what_can_be_stored_are_prices(text: str) -> None:
    prices = pricing.unit_prices(parsed(model(pricing__completion=text)).pricing)

    assert prices.completion_pico_usd >= 0


PICO_USD = st.integers(0, 2**63 - 1)


@given(prompt=PICO_USD, completion=PICO_USD, cached=PICO_USD, reasoning=PICO_USD)
def test_prices_are_read_exactly_and_complete_each_other(
    prompt: int, completion: int, cached: int, reasoning: int
) -> None:
    written = {
        "prompt": prompt,
        "completion": completion,
        "input_cache_read": cached,
        "reasoning": reasoning,
    }
    texts = {name: to_decimal_string(PicoUsd(amount)) for name, amount in written.items()}

    whole = pricing.unit_prices(parsed(model(pricing=texts)).pricing)
    basic = {name: texts[name] for name in ("prompt", "completion")}
    half = pricing.unit_prices(parsed(model(pricing=basic)).pricing)

    assert (whole.prompt_pico_usd, whole.completion_pico_usd) == (prompt, completion)
    assert (whole.input_cache_read_pico_usd, whole.reasoning_pico_usd) == (cached, reasoning)
    assert (half.input_cache_read_pico_usd, half.reasoning_pico_usd) == (prompt, completion)
    assert (half.image_pico_usd, half.request_pico_usd) == (0, 0)


MODEL_IDS = ("a", "org/model", "org/model:free", "模型", "a b", "%2F", "x" * 200)
REFUSED_IDS = ("", "x" * 201, "a\nb", "a\x00b", "a\x7f", "a\x85", "a\u2028b", "a\u202eb")


@pytest.mark.parametrize("model_id", MODEL_IDS)
def test_an_id_is_any_printable_text_of_its_length(model_id: str) -> None:
    assert list(rules.parse(BACKENDS, {model_id: MODELS["example/model-a"]}).models) == [model_id]


@pytest.mark.parametrize("model_id", REFUSED_IDS)
def test_an_id_that_nobody_could_send_or_see_is_refused(model_id: str) -> None:
    said = refusal(models={model_id: MODELS["example/model-a"]})

    assert ": an ID has 1 to 200 characters, all of them printable" in said
    assert said.startswith('models."')


LIMITS: dict[str, Any] = {"temperature": {"max": 1.5, "min": 0}, "stop": ["x", True, "y"]}
NOT_JSON = {
    "a day": dt.date(2026, 11, 15),
    "an instant": dt.datetime(2026, 11, 15, tzinfo=dt.UTC),
    "no number": math.nan,
    "an endless number": math.inf,
    "a day inside": [{"x": dt.time(1)}],
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
def test_sampling_limits_hold_what_json_can_hold(value: object) -> None:
    assert refusal(models=model(sampling_limits={"x": value})).startswith(f"{A}.sampling_limits: ")


def test_a_revision_changes_with_the_limits_and_with_nothing_else() -> None:
    turned = {"stop": LIMITS["stop"], "temperature": {"min": 0, "max": 1.5}}
    first = rules.limits_revision(parsed(model(sampling_limits=LIMITS)))

    same = rules.limits_revision(
        parsed(model(sampling_limits=turned, context_length=9999, owned_by="another"))
    )
    other = rules.limits_revision(parsed(model(sampling_limits=LIMITS | {"stop": []})))

    assert first == same
    assert first != other
    assert len(first) == 16


def test_a_credential_does_not_show_in_what_is_printed_of_a_catalog() -> None:
    catalog = rules.parse(backend(api_key="hunter2"), MODELS)

    assert catalog.backends["engine"].api_key == "hunter2"
    assert "hunter2" not in repr(catalog)
    assert "hunter2" not in refusal(backend(api_key="hunter2", typo=1), {})
