"""LangChain's ChatOpenAI. Prints what an ability gave as one line of JSON."""

import json
import os
import sys

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

MODEL = ChatOpenAI(
    base_url=os.environ["BASE_URL"],
    api_key=os.environ["KEY"],
    model=os.environ["MODEL"],
    max_retries=0,
)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


def chat():
    return {"text": MODEL.invoke("Say it.").content}


def stream():
    pieces = [piece.content for piece in MODEL.stream("Say it.") if piece.content]
    return {"text": "".join(pieces), "pieces": len(pieces)}


def tools():
    bound = MODEL.bind_tools([get_weather])
    asked = HumanMessage("What is the weather?")
    first = bound.invoke([asked])
    results = [
        ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
        for call in first.tool_calls
    ]
    return {"text": bound.invoke([asked, first, *results]).content}


def structured():
    found = MODEL.with_structured_output(Weather).invoke("What is the weather?")
    return found.model_dump()


def turns():
    first = MODEL.invoke("One?")
    history = [HumanMessage("One?"), AIMessage(first.content), HumanMessage("Two?")]
    return {"text": MODEL.invoke(history).content}


print(json.dumps(globals()[sys.argv[1]]()))
