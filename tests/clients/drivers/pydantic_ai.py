"""pydantic-ai's agent on chat completions. Prints what an ability gave as one line of JSON."""

import asyncio
import json
import os
import sys

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

MODEL = OpenAIChatModel(
    os.environ["MODEL"],
    provider=OpenAIProvider(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"]),
)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


async def chat():
    return {"text": (await Agent(MODEL).run("Say it.")).output}


async def stream():
    async with Agent(MODEL).run_stream("Say it.") as run:
        pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
    return {"text": "".join(pieces), "pieces": len(pieces)}


async def tools():
    agent = Agent(MODEL, tools=[get_weather])
    return {"text": (await agent.run("What is the weather?")).output}


async def structured():
    run = await Agent(MODEL, output_type=Weather).run("What is the weather?")
    return run.output.model_dump()


async def turns():
    agent = Agent(MODEL)
    first = await agent.run("One?")
    return {"text": (await agent.run("Two?", message_history=first.all_messages())).output}


print(json.dumps(asyncio.run(globals()[sys.argv[1]]())))
