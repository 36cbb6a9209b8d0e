"""LiteLLM as a client. Prints what an ability gave as one line of JSON."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from pydantic import BaseModel

NAMED = {
    "model": f"openai/{os.environ['MODEL']}",
    "api_base": os.environ["BASE_URL"],
    "api_key": os.environ["KEY"],
    "num_retries": 0,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


def _message(messages, **options):
    return litellm.completion(messages=messages, **NAMED, **options).choices[0].message


def _user(text):
    return {"role": "user", "content": text}


def chat():
    return {"text": _message([_user("Say it.")]).content}


def stream():
    chunks = litellm.completion(messages=[_user("Say it.")], stream=True, **NAMED)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    pieces = [piece for piece in pieces if piece]
    return {"text": "".join(pieces), "pieces": len(pieces)}


def _plain(message):
    """What the interface knows of a message."""
    kept = {name: getattr(message, name, None) for name in ("role", "content", "tool_calls")}
    if kept["tool_calls"]:
        kept["tool_calls"] = [call.model_dump() for call in kept["tool_calls"]]
    return {name: value for name, value in kept.items() if value is not None}


def tools(sent_back=lambda message: message):
    history = [_user("What is the weather?")]
    first = _message(history, tools=[TOOL])
    history.append(sent_back(first))
    for call in first.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        result = {"role": "tool", "tool_call_id": call.id, "content": f"sunny in {city}"}
        history.append(result)
    return {"text": _message(history, tools=[TOOL]).content}


def structured():
    found = _message([_user("What is the weather?")], response_format=Weather)
    return json.loads(found.content)


def turns(sent_back=lambda message: message):
    first = _message([_user("One?")])
    return {"text": _message([_user("One?"), sent_back(first), _user("Two?")]).content}


def tools_plain():
    return tools(_plain)


def turns_plain():
    return turns(_plain)


print(json.dumps(globals()[sys.argv[1]]()))
