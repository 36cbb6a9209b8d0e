"""Reads what fields and operations mean from the docstrings below their declarations.

The OpenAPI document is rendered from the source, so that a meaning is written once. A field without
a docstring, there or in a type that it is inherited from, has the meaning of its name in `SHARED`.
"""

import ast
import sys
from collections.abc import Iterable
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from types import ModuleType
from typing import Final

from msgspec import Struct

from tollhouse.contract.operation import Operation

Docstrings = dict[str, str]

SHARED: Final[Docstrings] = {
    "object": "The kind of the object.",
    "type": "Tells this object from the others that can stand in its place.",
    "id": "Identifies the object for good.",
    "name": "A label for people, which need not be unique.",
    "created": "When it was made, in Unix seconds.",
    "created_at": "When it was created, in Unix seconds.",
    "updated_at": "When it was last changed, in Unix seconds.",
    "expires_at": "When it ends, in Unix seconds, or null if it never does.",
    "last_used_at": "The last request with the key, in Unix seconds, or null before the first.",
    "deleted": "Whether it is gone. Always true.",
    "data": "The objects of the page, in its order.",
    "has_more": "Whether another page follows.",
    "first_id": "The first object of the page, or null if the page is empty.",
    "last_id": (
        "The last object of the page, or null if the page is empty. Send it as `after` to get the "
        "next page."
    ),
    "next_page": "The cursor of the next page: send it as `page`. Null on the last one.",
    "after": "The `last_id` of the previous page. Without it the list begins.",
    "limit": "The largest number of objects, or of buckets, in the page.",
    "page": "The `next_page` of the previous answer, with the same other parameters.",
    "order": "The order of creation: oldest first (`asc`) or newest first (`desc`).",
    "start_time": "The beginning, in Unix seconds.",
    "end_time": "The end, which does not belong to it, in Unix seconds.",
    "results": "One result for each group that has anything to report.",
    "project_id": "A project of the organization.",
    "api_key_id": "A key of the organization.",
    "policy_id": "A policy of the organization.",
    "alert_subscription_id": "An alert subscription of the organization.",
    "request_id": "The request, as `X-Request-ID` of its answer names it.",
    "model": "The model, as `GET /v1/models` lists it. It may contain slashes.",
    "permissions": "The operations that the key allows, by their permissions.",
    "redacted_value": "The beginning and the end of the secret, for recognition.",
    "owner": "The project or organization that the key belongs to.",
    "allowed_models": "The only models that may be used, or null for all.",
    "rule": "The question about a text that the judge answers. Yes is a match.",
    "direction": "The content that is judged: what callers send, what models answer, or both.",
    "mode": "The effect of a match: it is recorded (`monitoring`) or refused (`enforcing`).",
    "match_threshold_basis_points": (
        "The score from which a text matches, in hundredths of a percent."
    ),
    "score_basis_points": (
        "The judge's probability of a match, in hundredths of a percent; null without a verdict."
    ),
    "lowest_basis_points": "The lowest score that the judge's answer allows; null without one.",
    "highest_basis_points": "The highest score that the judge's answer allows; null without one.",
    "coverage_basis_points": (
        "The probability that the judge gave to yes and no together, in hundredths of a percent; "
        "null without a verdict."
    ),
    "version": "The number of a published version, from 1.",
    "policy_ids": "Policies to apply besides those that apply by themselves.",
    "messages": "The conversation so far, oldest first.",
    "stream": "Whether the answer comes as server-sent events, piece by piece.",
    "tools": "What the model may call.",
    "tool_choice": "Whether the model must call a tool, and which.",
    "parallel_tool_calls": "Whether one answer may call several tools.",
    "tool_calls": "The calls that the model asks the caller to run.",
    "temperature": "The randomness of the choice of tokens; 0 has the least.",
    "top_p": "Only the likeliest tokens that have this probability together are drawn.",
    "frequency_penalty": "Makes a token less likely for each time that it occurred.",
    "presence_penalty": "Makes a token less likely if it occurred at all.",
    "top_logprobs": "The number of alternatives for each token in the log probabilities.",
    "safety_identifier": "The end user as the backend may know them, such as a digest.",
    "user": "The end user; the older name of `safety_identifier`.",
    "store": "Only false is accepted, because nothing is stored.",
    "prompt_cache_key": "Requests with the same key are likely to share cached prompts.",
    "prompt_cache_retention": "The time for which the backend may keep the prompt in its cache.",
    "refusal": "The words in which the model declines to answer.",
    "reasoning_content": "The same as `reasoning`, for clients that know this name.",
    "verbosity": "How much the model writes.",
    "strict": "Whether the answer must match the schema exactly.",
    "schema": "A JSON Schema.",
    "currency": "The unit of `value`: US dollars.",
    "response": "The whole response as it is at this event.",
    "sequence_number": "The position of the event in its stream, from 0 without gaps.",
    "output_index": "The position of the item in `output` of the response.",
    "item_id": "The item that the event adds to.",
    "content_index": "The position of the part in `content` of the item.",
    "delta": "The next piece: append it to the earlier ones.",
    "logprobs": "Log probabilities of the tokens, if the request asked for them.",
    "input_tokens": "Tokens that the model read.",
    "output_tokens": "Tokens that the model wrote, its reasoning included.",
    "total_tokens": "Tokens that were read or written.",
    "requests": "The number of requests.",
    "stop_sequence": "The sequence at which the answer ended, or null.",
    "is_alerting": "Whether the amount has reached the share at which alerts are raised.",
    "requests_per_minute": "The largest number of requests in a minute; null for no limit.",
    "tokens_per_minute": "The largest number of tokens in a minute; null for no limit.",
    "concurrent_requests": "The largest number of requests at one time; null for no limit.",
}
"""The meanings of fields and parameters that have one meaning wherever their name stands."""


def of_type(type_: type[Struct]) -> str:
    """Return the meaning of a type: its docstring, without indentation."""
    return cleandoc(type_.__doc__ or "")


def of_field(type_: type[Struct], name: str) -> str | None:
    """Return the docstring below a field, or below the same field of a base, or None."""
    found = (_docstrings(sys.modules[each.__module__])[each.__name__] for each in _types(type_))
    return next((texts[name] for texts in found if name in texts), None)


def of_operations(modules: Iterable[ModuleType]) -> Docstrings:
    """Return the docstrings below the operations that modules declare, by the operation's ID."""
    return {
        value.id: text
        for module in modules
        for name, text in _docstrings(module)[""].items()
        if isinstance(value := vars(module)[name], Operation)
    }


def _types(type_: type[Struct]) -> list[type[Struct]]:
    return [each for each in type_.__mro__ if issubclass(each, Struct) and each is not Struct]


@cache
def _docstrings(module: ModuleType) -> dict[str, Docstrings]:
    """Return the docstrings below the names of each class of a module, and of "", the module."""
    tree = ast.parse(getsource(module))
    classes = {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: dict(_described(body)) for name, body in {**classes, "": tree.body}.items()}


def _described(body: list[ast.stmt]) -> list[tuple[str, str]]:
    return [
        (name, " ".join(text.split()))
        for statement, below in pairwise(body)
        if (name := _declared(statement)) and (text := _text(below))
    ]


def _declared(statement: ast.stmt) -> str:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


def _text(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""
