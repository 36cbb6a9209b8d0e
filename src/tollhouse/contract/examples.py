"""Makes the examples of the OpenAPI document from the schemas, with plausible values by name."""

from typing import Any, Final

Json = dict[str, Any]

_INSTANT: Final = 1_767_225_600
_MODEL: Final = "example/small"
_SHOWN: Final = object()
"""Stands for a property that is shown although it may be left out."""
_SOME_ID: Final = "0198f2c4-5d1e-7a3b-9c40-2f6b8d1e7a55"
_TALK: Final = [{"role": "user", "content": "What is the capital of France?"}]
_ANSWER: Final = "The capital of France is Paris."
_IN_PATHS: Final = {"version": "1"}
_RULE: Final = "Does the text contain a card number?"

BY_NAME: Final[Json] = {
    "id": _SOME_ID,
    "name": "search",
    "model": _MODEL,
    "messages": _TALK,
    "rule": _RULE,
    "text": "My card number is 4111 1111 1111 1111.",
    "revision": 1,
    "version": 1,
    "project_id": "0198f2c4-1b7d-7c02-8e15-6a94d03c5b21",
    "api_key_id": "0198f2c4-2e90-7d44-b1f7-05c8e7a9d310",
    "policy_id": "pol_0198f2c46a7f7b10a3d25c9e41f08b76",
    "request_id": "0198f2c4-8c33-7e15-94ab-d7f20b6e1c48",
    "first_id": _SOME_ID,
    "last_id": _SOME_ID,
    "redacted_value": "thp_Zk3q...9xQw",
    "permissions": ["inference:write", "models:read"],
    "deleted": True,
    "value": "12.5",
    "direction": "request",
    "scope": "organization",
    "state": "draft",
    "mode": "monitoring",
    "match_threshold_basis_points": 5_000,
    "threshold_basis_points": 5_000,
    "score_basis_points": 9_412,
    "lowest_basis_points": 9_405,
    "highest_basis_points": 9_419,
    "coverage_basis_points": 9_980,
    "outcome": "match",
    "period": "month",
    "start_time": _INSTANT,
    "end_time": _INSTANT + 86_400,
    "alert_subscription_id": _SOME_ID,
    "Idempotency-Key": "create-search-1",
    "input_tokens": 14,
    "output_tokens": 8,
    "total_tokens": 22,
    "requests": 1,
    "overlap_seconds": 3_600,
    "retention_days": 30,
    "dimensions": ["user"],
    "ends_answer_early": False,
}
"""Values of properties by their names."""

_UNGROUPED: Final = {"project_id": None, "api_key_id": None}
_NAMED: Final = {"name": "Card numbers"}
_POLICY: Final = {**_NAMED, "id": BY_NAME["policy_id"], "published": None}


def _usd(value: str) -> Json:
    return {"value": value, "currency": "usd"}


_REQUEST: Final[Json] = {
    "outcome": "succeeded",
    "operation": "createChatCompletion",
    "status": 200,
    "blocked_by": [],
    "attempts": [],
    "backend": "engine",
    "replica": "http://10.0.0.5:8000",
    "cost": _usd("0.00003"),
}
OF_TYPE: Final[dict[str, Json]] = {
    "AdminKey": {"permissions": ["billing:read"], "redacted_value": "tha_Hw7c...4bNe"},
    "AlertDelivery": {
        "type": "cap.threshold_reached",
        "text": "The organization has used 80% of its monthly cap.",
        "details": {"percent": 80},
        "attempts": 1,
        "subscription_id": _SOME_ID,
    },
    "AlertSubscription": {
        "url": "https://alerts.example.com/tollhouse",
        "cap_percents": [80],
        "credit_below": None,
    },
    "AuditActor": {
        "id": "0198f2c4-4f08-7b6a-8d29-13e5a7c0f964",
        "type": "admin_api_key",
        "name": None,
    },
    "AuditChange": {"field": "name", "before": "search", "after": "find"},
    "AuditEntry": {"action": "project.change"},
    "AuditResource": {"type": "project"},
    "ChatCompletion": {"id": "chatcmpl-123", "object": _SHOWN, "usage": _SHOWN},
    "ChatRequest": {"max_completion_tokens": 256},
    "Choice": {"finish_reason": "stop"},
    "CompletionMessage": {"role": "assistant", "content": _ANSWER},
    "CostAmount": {"value": "0.00003"},
    "CostResult": _UNGROUPED,
    "CreateAdminKey": {"permissions": ["billing:read"]},
    "CreateManagedProjectKey": {"expires_at": _INSTANT + 7_776_000},
    "CreatePolicy": _NAMED,
    "CreatedAdminKey": {
        "permissions": ["billing:read"],
        "redacted_value": "tha_Hw7c...4bNe",
        "value": "tha_...",
    },
    "CreditEntry": {"kind": "test_payment", "reason": "a payment for trying"},
    "Credits": {
        "balance": _usd("25"),
        "available": _usd("24.5"),
        "held": _usd("0.5"),
        "unsettled": _usd("0"),
    },
    "EditManagedPolicy": {"mode": "enforcing"},
    "EditPolicy": {"mode": "enforcing"},
    "EditProject": {"allowed_models": [_MODEL]},
    "EffectivePolicy": {**_NAMED, "id": BY_NAME["policy_id"], "source": _SHOWN},
    "ManagedProjectKey": {"value": "thp_..."},
    "Message": {
        "id": "msg_123",
        "content": [{"type": "text", "text": _ANSWER}],
        "stop_reason": "end_turn",
    },
    "MessageRequest": {"max_tokens": 256},
    "Model": {
        "id": _MODEL,
        "name": "Small example",
        "display_name": "Small example",
        "owned_by": "example",
        "input_modalities": ["text"],
        "output_modalities": ["text"],
        "supported_sampling_parameters": ["temperature", "top_p"],
        "supported_features": ["tools"],
        "is_ready": True,
        "context_length": 32_768,
        "max_output_length": 8_192,
        "root": _MODEL,
        "quantization": "bf16",
        "sampling_limits_revision": "44136fa355b3678a",
    },
    "ModelAccess": {"available": True},
    "ModelPricing": {
        "prompt": "0.000001",
        "completion": "0.000002",
        "image": "0",
        "request": "0",
        "input_cache_read": "0.0000005",
    },
    "NarrowAdminKey": {"permissions": ["billing:read"]},
    "PolicyRemark": {
        "weakness": "vague",
        "advice": "Name what the text must contain instead of how it is.",
    },
    "Policy": _POLICY,
    "ManagedPolicy": _POLICY,
    "PolicyDecision": {"action": "would_block"},
    "PolicyRollup": {"matches": 2, "no_matches": 40},
    "ProjectKey": {"value": "thp_..."},
    "PublishedPolicy": {"current": True},
    "ManagedPublishedPolicy": {"current": True},
    "RateLimit": {**_UNGROUPED, "requests_per_minute": 600},
    "RequestDecision": {**_NAMED, "outcome": "no_match", "score_basis_points": 12},
    "RequestDetails": _REQUEST,
    "RequestEvaluation": {"judging_ms": 38},
    "RequestRecord": _REQUEST,
    "RequestRollup": {
        **_UNGROUPED,
        "model": None,
        "failures": [],
        "mean_total_ms": 412,
        "latency_counts": [0, 1, 0],
    },
    "RequestTimings": {
        "queue_ms": 1,
        "admission_ms": 2,
        "judging_ms": 38,
        "first_byte_ms": 402,
        "total_ms": 412,
    },
    "RequestRollupPage": {"latency_bounds_ms": [100, 1_000]},
    "RequestTokens": {"input": 14, "cached_input": 0, "output": 8},
    "ResponseRequest": {"input": "What is the capital of France?", "max_output_tokens": 256},
    "ResponseResult": {
        "id": "resp_123",
        "status": "completed",
        "completed_at": _INSTANT + 1,
        "max_output_tokens": 256,
        "output": [
            {
                "id": "msg_123",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": _ANSWER, "annotations": []}],
            }
        ],
        "text": {"format": {"type": "text"}},
        "reasoning": {"effort": None, "summary": None},
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "truncation": "disabled",
        "error": None,
        "incomplete_details": None,
    },
    "ResponseUsage": {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
    "SetAlertSubscription": {
        "url": "https://alerts.example.com/tollhouse",
        "cap_percents": [80],
    },
    "SetRateLimit": {"requests_per_minute": 600},
    "SpendingLimit": {
        **_UNGROUPED,
        "limit": _usd("50"),
        "used": _usd("12.5"),
        "held": _usd("0.5"),
        "remaining": _usd("37"),
        "alert_percent": 80,
    },
    "Usage": {"prompt_tokens": 14, "completion_tokens": 8},
    "UsageResult": {**_UNGROUPED, "model": None, "amount": _usd("0.00003")},
}
"""Values of properties of one type, which are also shown if they may be left out."""


def add(document: Json) -> None:
    """Add examples to the parameters that are required, and to the bodies and answers in JSON."""
    schemas = document["components"]["schemas"]
    for path in document["paths"].values():
        for operation in path.values():
            for parameter in operation["parameters"]:
                if parameter["required"]:
                    value = _value(parameter["name"], parameter["schema"], _IN_PATHS, schemas)
                    parameter["example"] = value
            for holder in (operation.get("requestBody", {}), operation["responses"]["200"]):
                if (content := holder.get("content", {}).get("application/json")) is not None:
                    content["example"] = of_type(
                        content["schema"]["$ref"].rpartition("/")[2], schemas
                    )


def of_type(name: str, schemas: dict[str, Json]) -> Json:
    """Return an example of a type: its required properties, and those that `OF_TYPE` has for it."""
    schema, own = schemas[name], OF_TYPE.get(name, {})
    shown = {*schema.get("required", []), *own}
    return {
        each: _value(each, form, own, schemas)
        for each, form in schema["properties"].items()
        if each in shown
    }


def _value(name: str, form: Json, own: Json, schemas: dict[str, Json]) -> Any:  # noqa: ANN401 - JSON
    found = own.get(name, _SHOWN)
    if found is not _SHOWN:
        return found
    if "const" in form or "default" in form:
        return form.get("const", form.get("default"))
    forms = form.get("anyOf", [form])
    if (reference := next((each["$ref"] for each in forms if "$ref" in each), None)) is not None:
        return of_type(reference.rpartition("/")[2], schemas)
    if name in BY_NAME:
        return BY_NAME[name]
    return None if {"type": "null"} in forms else _plain(name, forms[0], schemas)


def _plain(name: str, form: Json, schemas: dict[str, Json]) -> Any:  # noqa: ANN401 - JSON
    match form.get("type"):
        case "array":
            items = form.get("items", {})
            return [_value("", items, {}, schemas)] if "$ref" in items else []
        case "object":
            return {}
        case "boolean":
            return False
        case "integer" | "number":
            return (
                _INSTANT if name.endswith(("_at", "_time", "created")) else form.get("minimum", 0)
            )
        case "string":
            return form["enum"][0] if "enum" in form else name
        case _:
            return None
