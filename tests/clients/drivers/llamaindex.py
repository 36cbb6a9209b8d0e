"""LlamaIndex's OpenAILike. Prints what an ability gave as one line of JSON."""

import json
import os
import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

MODEL = OpenAILike(
    api_base=os.environ["BASE_URL"],
    api_key=os.environ["KEY"],
    model=os.environ["MODEL"],
    context_window=8192,
    is_chat_model=True,
    is_function_calling_model=True,
    max_retries=0,
)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


def chat():
    return {"text": MODEL.chat([ChatMessage(role="user", content="Say it.")]).message.content}


def stream():
    asked = [ChatMessage(role="user", content="Say it.")]
    pieces = [piece.delta for piece in MODEL.stream_chat(asked) if piece.delta]
    return {"text": "".join(pieces), "pieces": len(pieces)}


def tools():
    tool = FunctionTool.from_defaults(get_weather)
    history = [ChatMessage(role="user", content="What is the weather?")]
    first = MODEL.chat_with_tools([tool], chat_history=history)
    history.append(first.message)
    for call in MODEL.get_tool_calls_from_response(first):
        result = tool(**call.tool_kwargs).content
        identity = {"tool_call_id": call.tool_id}
        history.append(ChatMessage(role="tool", content=result, additional_kwargs=identity))
    return {"text": MODEL.chat_with_tools([tool], chat_history=history).message.content}


def structured():
    asked = [ChatMessage(role="user", content="What is the weather?")]
    return MODEL.as_structured_llm(Weather).chat(asked).raw.model_dump()


def turns():
    history = [ChatMessage(role="user", content="One?")]
    history.append(MODEL.chat(history).message)
    history.append(ChatMessage(role="user", content="Two?"))
    return {"text": MODEL.chat(history).message.content}


print(json.dumps(globals()[sys.argv[1]]()))
