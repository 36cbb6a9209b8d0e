"""The tables of the specification: every resource, every line, without a look at our types.

`test_specification` runs them against the document and against a live server.
"""

from dataclasses import dataclass

from tests.contract.cases import (
    ACCEPTED,
    Cases,
    Table,
    Told,
    cases,
    check_case,
    decoded,
    outcome_of,
    row_cases,
)
from tests.contract.kinds import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    OBJECT,
    OBJECTS,
    ONLY_FALSE,
    STRING,
    STRINGS,
    UUID,
    Kind,
    Row,
    array,
    integer,
    list_of,
    mapping,
    nested,
    number,
    one_of,
    row,
    rows,
    string,
)

__all__ = [
    "ACCEPTED",
    "BOOLEAN",
    "OBJECT",
    "Cases",
    "Kind",
    "Row",
    "Table",
    "Told",
    "array",
    "cases",
    "check_case",
    "decoded",
    "integer",
    "number",
    "one_of",
    "outcome_of",
    "row",
    "row_cases",
    "string",
]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """An object of the specification, and the name of its schema in the document.

    A schema `A.b` is the object that stands in the field `b` of `A`. `is_whole`: the
    specification lists all fields. `says_required`: it says which of them are required.
    """

    schema: str
    rows: tuple[Row, ...]
    refuses_unknown: bool = False
    says_required: bool = False
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of one operation in one place: `query`, `header`, `path`.

    The place `answer` stands for the headers of its answer.
    """

    method: str
    path: str
    place: str
    rows: tuple[Row, ...]
    is_whole: bool = True


MESSAGE = {"role": "user", "content": "Hello"}
SCHEMA = {"name": "answer", "schema": {"type": "object"}}
FORMAT = {"type": "json_schema", "json_schema": SCHEMA}
TOOL = {"type": "function", "function": {"name": "get_time"}}
RULE = "Does the text name a person?"
PROJECT = "11111111-1111-4111-8111-111111111111"
"""In place of the ID of a project that exists."""

OUTPUT_BOUND = integer(1, 999_990)
PENALTY = number(-2, 2)
EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultracode")
POLICY_IDS = row("policy_ids", array("pol_1", high=1000, of=string(1, 120)))
MODEL_NAME = row("model", string(1, 200), required=True)
INCLUDE = (
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
)
MODALITIES = array("text", of=one_of("text", "image", "file", "audio", "video"))

# Chat: the request.

CHAT_REQUEST = Resource(
    schema="ChatRequest",
    refuses_unknown=True,
    says_required=True,
    rows=(
        MODEL_NAME,
        row("messages", array(MESSAGE, 1, of=nested("ChatMessage")), required=True),
        POLICY_IDS,
        row("stream", BOOLEAN, default=False),
        row("max_tokens", OUTPUT_BOUND, null=True, default=1024),
        row("max_completion_tokens", OUTPUT_BOUND, null=True, default=1024),
        *rows("temperature top_p", number(), null=True),
        *rows("frequency_penalty presence_penalty", PENALTY, null=True),
        row("logit_bias", mapping({"50256": -100}, number(-100, 100)), null=True),
        row("n", integer(1, 128), null=True),
        row("seed", INTEGER, null=True),
        row("stop", STRING, array("END", of=STRING), null=True),
        row("stream_options", nested("StreamOptions", {}), null=True, beside={"stream": True}),
        row("thinking", BOOLEAN, null=True),
        row("reasoning", nested("Reasoning", {}), null=True),
        row("reasoning_effort", EFFORT, null=True),
        row("include_reasoning", BOOLEAN, null=True),
        row("safety_identifier", string(high=64), null=True),
        row("user", string(high=512), null=True),
        row("structuredOutputs", BOOLEAN),
        row("tools", array({"type": "function"}, of=OBJECT), null=True),
        row(
            "tool_choice",
            one_of("none", "auto", "required"),
            OBJECT,
            null=True,
            beside={"tools": [TOOL]},
        ),
        row("parallel_tool_calls", BOOLEAN, null=True, beside={"tools": [TOOL]}),
        row("functions", array({"name": "f"}, of=OBJECT), null=True),
        row(
            "function_call",
            one_of("none", "auto"),
            OBJECT,
            null=True,
            beside={"functions": [{"name": "f"}]},
        ),
        row(
            "response_format",
            nested("TextFormat", {"type": "text"}),
            nested("JsonObjectFormat", {"type": "json_object"}),
            nested("JsonSchemaFormat", FORMAT),
            null=True,
        ),
        row("modalities", array("text", of=STRING), null=True),
        row("verbosity", one_of("low", "medium", "high"), null=True),
        *rows("audio prediction metadata", OBJECT, null=True),
        row("store", ONLY_FALSE, default=False),
        row("service_tier", STRING, null=True),
        row("prompt_cache_key", string(high=512), null=True),
        row("prompt_cache_retention", one_of("in_memory", "24h"), null=True),
        row("logprobs", BOOLEAN, null=True),
        row("top_logprobs", INTEGER, null=True, beside={"logprobs": True}),
        row("prompt_logprobs", INTEGER, null=True),
        row("web_search_options", OBJECT, null=True),
        row("cache_salt", STRING, null=True),
    ),
)
CHAT_MESSAGE = Resource(
    schema="ChatMessage",
    refuses_unknown=True,
    says_required=True,
    rows=(
        row(
            "role",
            one_of("system", "developer", "user", "assistant", "tool", "function"),
            required=True,
        ),
        row(
            "content",
            STRING,
            array({"type": "text", "text": "Hi", "extra": 1}, of=OBJECT),
            null=True,
        ),
        *rows("reasoning reasoning_content name tool_call_id", STRING, null=True),
        row("tool_calls", array({"id": "call_1"}, of=OBJECT), null=True),
        row("function_call", OBJECT, null=True),
        row("model_id", string(1, 256)),
    ),
)
CONTENT_PART = Resource(
    schema="ChatMessage.content",
    says_required=True,
    rows=(*rows("type text", STRING, null=True), row("image_url", ANYTHING)),
)
STREAM_OPTIONS = Resource(
    schema="StreamOptions",
    refuses_unknown=True,
    says_required=True,
    rows=(row("include_usage", BOOLEAN, null=True),),
)
REASONING = Resource(
    schema="Reasoning",
    refuses_unknown=True,
    says_required=True,
    rows=(
        row("enabled", BOOLEAN, null=True),
        row("effort", EFFORT, null=True),
        row("max_tokens", OUTPUT_BOUND, null=True),
        row("exclude", BOOLEAN, null=True),
    ),
)
FORMATS = tuple(
    Resource(
        schema=schema,
        refuses_unknown=True,
        says_required=True,
        rows=(row("type", one_of(type_), required=True), *more),
    )
    for schema, type_, more in (
        ("TextFormat", "text", ()),
        ("JsonObjectFormat", "json_object", ()),
        (
            "JsonSchemaFormat",
            "json_schema",
            (row("json_schema", nested("JsonSchema", SCHEMA), required=True),),
        ),
    )
)
JSON_SCHEMA = Resource(
    schema="JsonSchema",
    refuses_unknown=True,
    says_required=True,
    rows=(
        row("name", string(1, 128), required=True),
        row("description", string(high=2048), null=True),
        row("schema", OBJECT, required=True),
        row("strict", BOOLEAN, null=True),
    ),
)

# Chat: the answer.

CHAT_ANSWERS = (
    Resource(
        schema="ChatCompletion",
        says_required=True,
        rows=(
            row("id", STRING, required=True),
            row("object", one_of("chat.completion")),
            row("created", INTEGER, required=True),
            row("model", STRING, required=True),
            row("choices", list_of("Choice"), required=True),
            row("usage", nested("Usage"), null=True),
            *rows("system_fingerprint service_tier", STRING, null=True),
            row("prompt_logprobs", array({}, of=OBJECT, takes_null_items=True), null=True),
        ),
    ),
    Resource(
        schema="Choice",
        says_required=True,
        rows=(
            row("index", INTEGER, required=True),
            row("message", nested("CompletionMessage"), required=True),
            row("logprobs", ANYTHING, null=True),
            row("finish_reason", STRING, null=True),
        ),
    ),
    Resource(
        schema="CompletionMessage",
        says_required=True,
        rows=(
            row("role", one_of("system", "developer", "user", "assistant", "tool"), required=True),
            row("content", STRING, OBJECTS, null=True),
            *rows(
                "refusal reasoning reasoning_content name tool_call_id",
                STRING,
                null=True,
            ),
            row("tool_calls", OBJECTS, null=True),
            row("function_call", OBJECT, null=True),
            row("annotations", list_of("Annotation"), null=True),
        ),
    ),
    Resource(
        schema="Annotation",
        says_required=True,
        rows=(
            row("type", one_of("url_citation")),
            row("url_citation", nested("UrlCitation"), required=True),
        ),
    ),
    Resource(
        schema="UrlCitation",
        says_required=True,
        rows=(
            *rows("url title", STRING, required=True),
            *rows("start_index end_index", integer(0), required=True),
        ),
    ),
    Resource(
        schema="Usage",
        says_required=True,
        rows=(
            *rows("prompt_tokens completion_tokens total_tokens", INTEGER, required=True),
            row(
                "prompt_tokens_details",
                mapping({}, INTEGER, mapping({}, INTEGER), takes_null_items=True),
                null=True,
            ),
            row(
                "completion_tokens_details",
                mapping({}, INTEGER, takes_null_items=True),
                null=True,
            ),
        ),
    ),
)

# Responses and token counting.

RESPONSE_REQUEST = Resource(
    schema="ResponseRequest",
    says_required=True,
    is_whole=False,
    rows=(
        MODEL_NAME,
        row("input", ANYTHING, required=True),
        row("max_output_tokens", OUTPUT_BOUND, default=1024, is_named=False),
        row("presence_penalty", PENALTY, is_named=False),
        row("frequency_penalty", PENALTY, is_named=False),
        row("tools", array({"type": "web_search"}, of=OBJECT)),
        row(
            "tool_choice",
            one_of("none", "auto", "required"),
            Kind(json_type="object", item={"type": "web_search"}),
            beside={"tools": [{"type": "web_search"}]},
        ),
        row("include", array(INCLUDE[0], of=one_of(*INCLUDE))),
        row("truncation", one_of("auto", "disabled"), is_named=False),
        row("service_tier", one_of("auto", "default", "flex", "scale", "priority")),
        row("prompt_cache_key", string(high=512)),
        row("safety_identifier", string(high=64), is_named=False),
        row("user", string(high=512), is_named=False),
        POLICY_IDS,
        row("store", ONLY_FALSE),
        row("previous_response_id", ANYTHING),
    ),
)
COUNT_REQUEST = Resource(
    schema="CountTokens",
    says_required=True,
    is_whole=False,
    rows=(
        MODEL_NAME,
        row("messages", array(MESSAGE, 1, of=OBJECT), required=True),
        row("tools", array({"name": "f", "input_schema": {}}, of=OBJECT)),
    ),
)
RESPONSE_ANSWERS = (
    Resource(
        schema="ResponseResult",
        is_whole=False,
        rows=(
            *rows("id model", STRING),
            row("status", one_of("completed")),
            row("output", OBJECTS),
            row("object", one_of("response")),
            row("usage", nested("ResponseUsage")),
        ),
    ),
    Resource(
        schema="ResponseUsage",
        rows=(
            *rows("input_tokens output_tokens total_tokens", INTEGER),
            *rows("input_tokens_details output_tokens_details", OBJECT),
        ),
    ),
    Resource(schema="TokenCount", rows=(row("input_tokens", integer(0)),)),
)

# Policies.

DIRECTION = row("direction", one_of("request", "response", "both"))
MODE = row("mode", one_of("monitoring", "enforcing"))
SCOPE = row("scope", one_of("organization", "projects", "unattached"))
THRESHOLD = row("match_threshold_basis_points", integer(1, 9999), null=True)
REVISION = row("revision", integer(1, 2_147_483_647), required=True)
DRAFT_ROWS = (
    row("description", string(high=240)),
    DIRECTION,
    MODE,
    SCOPE,
    row("project_ids", array(PROJECT, high=1000, of=STRING)),
    THRESHOLD,
)
CREATE_POLICY = Resource(
    schema="CreatePolicy",
    says_required=True,
    rows=(
        row("name", string(1, 80), required=True),
        row("rule", string(1, 20_000, ending="?"), required=True),
        *DRAFT_ROWS,
    ),
)
EDIT_POLICY = Resource(
    schema="EditPolicy",
    says_required=True,
    rows=(
        REVISION,
        row("name", string(1, 80)),
        row("rule", string(1, 20_000, ending="?")),
        *DRAFT_ROWS,
    ),
)
PAUSE_POLICY = Resource(schema="PausePolicy", says_required=True, rows=(REVISION,))
POLICY_ANSWERS = (
    Resource(
        schema="Policy",
        rows=(
            row("object", one_of("organization.policy")),
            row("id", STRING),
            row("name", string(1, 80)),
            row("description", string(high=240)),
            row("state", one_of("draft", "monitoring", "enforcing", "paused")),
            row("revision", integer(1, 2_147_483_647)),
            row("has_unpublished_changes", BOOLEAN),
            *rows("created_at updated_at", INTEGER),
            row("draft", nested("PolicyDraft")),
            row("current_version", INTEGER, null=True),
            row("published", nested("PublishedPolicy")),
        ),
    ),
    Resource(
        schema="PolicyDraft",
        rows=(
            row("rule", string(1, 20_000, ending="?")),
            DIRECTION,
            MODE,
            SCOPE,
            row("project_ids", array("x", high=1000, of=STRING)),
            THRESHOLD,
            row("base_version", INTEGER),
        ),
    ),
    Resource(
        schema="PublishedPolicy",
        rows=(
            row("object", one_of("organization.policy.version")),
            *rows("id rule", STRING),
            *rows("version published_at match_threshold_basis_points", INTEGER),
            DIRECTION,
            MODE,
            SCOPE,
            row("project_ids", STRINGS),
            row("current", BOOLEAN),
        ),
    ),
    Resource(
        schema="EffectivePolicyList",
        rows=(row("object", one_of("list")), row("data", list_of("EffectivePolicy"))),
    ),
    Resource(
        schema="EffectivePolicy",
        rows=(
            row("object", one_of("organization.effective_policy")),
            *rows("id name source", STRING),
            row("version", INTEGER),
            DIRECTION,
            MODE,
            SCOPE,
        ),
    ),
)

# Keys and projects.

CREATE_KEY = Resource(
    schema="CreateProjectKey", says_required=True, rows=(row("name", STRING, required=True),)
)
KEY_ANSWERS = (
    Resource(
        schema="ProjectKey",
        rows=(
            row("object", one_of("organization.project.api_key")),
            row("id", UUID),
            *rows("name redacted_value value", STRING),
            *rows("created_at last_used_at expires_at", INTEGER),
            row("owner", nested("ProjectKeyOwner")),
            row("status", one_of("active", "revoked", "expired", "suspended")),
            row("permissions", STRINGS),
        ),
    ),
    Resource(
        schema="ProjectKeyOwner",
        rows=(row("id", UUID), row("type", one_of("project")), row("name", STRING)),
    ),
    Resource(
        schema="AdminKeyList",
        rows=(
            row("object", one_of("list")),
            row("data", list_of("AdminKey")),
            row("has_more", BOOLEAN),
            *rows("first_id last_id", STRING),
        ),
    ),
    Resource(
        schema="AdminKey",
        rows=(
            row("object", one_of("organization.admin_api_key")),
            row("id", UUID),
            *rows("name redacted_value", STRING),
            *rows("created_at last_used_at expires_at", INTEGER),
            row("owner", nested("AdminKeyOwner")),
            row("permissions", STRINGS),
        ),
    ),
    Resource(
        schema="AdminKeyOwner",
        rows=(row("id", UUID), row("type", one_of("organization"))),
    ),
    *(
        Resource(
            schema=schema,
            rows=(row("id", UUID), row("object", one_of(object_)), row("deleted", BOOLEAN)),
        )
        for schema, object_ in (
            ("ProjectDeleted", "organization.project.deleted"),
            ("AdminKeyDeleted", "organization.admin_api_key.deleted"),
        )
    ),
)

# Costs and models.

REPORT_ANSWERS = (
    Resource(
        schema="CostPage",
        rows=(
            row("object", one_of("page")),
            row("data", list_of("CostBucket")),
            row("has_more", BOOLEAN),
            row("next_page", STRING),
        ),
    ),
    Resource(
        schema="CostBucket",
        rows=(
            row("object", one_of("bucket")),
            *rows("start_time end_time", INTEGER),
            row("results", list_of("CostResult")),
        ),
    ),
    Resource(
        schema="CostResult",
        rows=(
            row("object", one_of("organization.costs.result")),
            row("amount", nested("CostAmount")),
            *rows("line_item project_id api_key_id", STRING),
        ),
    ),
    Resource(
        schema="CostAmount",
        rows=(row("value", STRING), row("currency", one_of("usd"))),
    ),
)
MODEL_ANSWERS = (
    Resource(
        schema="Model",
        rows=(
            row("object", one_of("model")),
            *rows("id owned_by name display_name quantization root parent", STRING),
            row("access", nested("ModelAccess")),
            *rows("created context_length max_output_length", INTEGER),
            row("input_modalities", MODALITIES),
            row("output_modalities", MODALITIES),
            row("pricing", nested("ModelPricing")),
            *rows("supported_sampling_parameters supported_features", STRINGS),
            row("sampling_limits", OBJECT),
            row("sampling_limits_revision", STRING),
            row("is_ready", BOOLEAN),
        ),
    ),
    Resource(
        schema="ModelAccess",
        rows=(
            *rows("required_checks missing_requirements", STRINGS),
            *rows("available locked", BOOLEAN),
        ),
    ),
    Resource(
        schema="ModelPricing",
        rows=tuple(rows("prompt completion image request input_cache_read", STRING)),
    ),
)

# Errors.

ERROR_ANSWERS = (
    Resource(schema="Envelope", rows=(row("error", nested("ErrorBody")),)),
    Resource(
        schema="MessagesEnvelope",
        is_whole=False,
        rows=(row("type", one_of("error")), row("error", nested("ErrorBody"))),
    ),
    Resource(
        schema="ErrorBody",
        says_required=True,
        rows=(
            *rows("code message type", STRING, required=True),
            *rows("param doc_url", STRING, null=True),
            row("request_id", STRING),
        ),
    ),
)

REQUESTS = (
    CHAT_REQUEST,
    CHAT_MESSAGE,
    CONTENT_PART,
    STREAM_OPTIONS,
    REASONING,
    *FORMATS,
    JSON_SCHEMA,
    RESPONSE_REQUEST,
    COUNT_REQUEST,
    CREATE_POLICY,
    EDIT_POLICY,
    PAUSE_POLICY,
    CREATE_KEY,
)
ANSWERS = (
    *CHAT_ANSWERS,
    *RESPONSE_ANSWERS,
    *POLICY_ANSWERS,
    *KEY_ANSWERS,
    *REPORT_ANSWERS,
    *MODEL_ANSWERS,
    *ERROR_ANSWERS,
)

# Parameters.

SESSION_ID = string(1, 512)
IDEMPOTENCY_KEY = row("Idempotency-Key", string(8, 200), required=True)
POLICIES = "/v1/organization/policies"
PROJECT_PATH = "/v1/organization/projects/{project_id}"
ADMIN_KEYS = "/v1/organization/admin_api_keys"
GROUPING = one_of("project_id", "api_key_id", "line_item")
PARAMETERS = (
    Parameters(
        method="post",
        path="/v1/chat/completions",
        place="answer",
        rows=(row("X-Request-ID", UUID, required=True),),
    ),
    Parameters(
        method="post",
        path="/v1/chat/completions",
        place="header",
        rows=tuple(rows("X-Service-Session-ID X-Alt-Session-ID", SESSION_ID)),
    ),
    Parameters(
        method="post",
        path="/v1/responses",
        place="header",
        is_whole=False,
        rows=(row("X-Service-Session-ID", SESSION_ID, is_named=False),),
    ),
    Parameters(
        method="post",
        path="/v1/messages/count_tokens",
        place="header",
        is_whole=False,
        rows=(
            row("anthropic-version", STRING, is_named=False),
            row("anthropic-beta", string(high=512), is_named=False),
            row("X-Service-Session-ID", SESSION_ID, is_named=False),
        ),
    ),
    Parameters(method="post", path=POLICIES, place="header", rows=(IDEMPOTENCY_KEY,)),
    Parameters(
        method="post", path=f"{PROJECT_PATH}/api_keys", place="header", rows=(IDEMPOTENCY_KEY,)
    ),
    Parameters(
        method="get",
        path=ADMIN_KEYS,
        place="query",
        is_whole=False,
        rows=(
            row("after", string(1, 200), is_named=False),
            row("limit", integer(1, 100), is_named=False),
        ),
    ),
    Parameters(
        method="get",
        path="/v1/organization/costs",
        place="query",
        is_whole=False,
        rows=(
            row("start_time", integer(0), is_named=False),
            row("end_time", integer(0), is_named=False),
            *(
                row(name, array(PROJECT, high=100, of=STRING), is_named=False)
                for name in ("project_ids", "api_key_ids")
            ),
            row("group_by", array("line_item", high=3, of=GROUPING), is_named=False),
            row("limit", integer(1, 180), is_named=False),
            row("page", string(1, 500), is_named=False),
        ),
    ),
    *(
        Parameters(
            method=method,
            path=path,
            place="path",
            rows=(row(path.partition("{")[2].partition("}")[0], string(1, 200), required=True),),
        )
        for method, path in (
            ("get", "/v1/models/{model}"),
            ("get", f"{POLICIES}/{{policy_id}}"),
            ("patch", f"{POLICIES}/{{policy_id}}"),
            ("post", f"{POLICIES}/{{policy_id}}/pause"),
            ("get", f"{PROJECT_PATH}/effective_policies"),
            ("post", f"{PROJECT_PATH}/api_keys"),
            ("post", f"{PROJECT_PATH}/archive"),
            ("delete", f"{ADMIN_KEYS}/{{api_key_id}}"),
        )
    ),
)


def fields_of(resource: Resource, *without: str) -> list[Row]:
    """The lines of a table, for a `Table` of cases."""
    return [line for line in resource.rows if line.name not in without]


def resource_of(schema: str) -> Resource:
    """The table of the schema with this name."""
    (found,) = (table for table in (*REQUESTS, *ANSWERS) if table.schema == schema)
    return found
