"""openai-agents on the Responses API. Prints what an ability gave as one line of JSON."""

import asyncio
import json
import os
import sys

from agents import (
    Agent,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
CLIENT = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=0)
MODEL = OpenAIResponsesModel(model=os.environ["MODEL"], openai_client=CLIENT)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


def agent(**options):
    return Agent(name="driver", model=MODEL, **options)


async def chat():
    return {"text": (await Runner.run(agent(), "Say it.")).final_output}


async def stream():
    run = Runner.run_streamed(agent(), "Say it.")
    pieces = [
        event.data.delta
        async for event in run.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    return {"text": "".join(pieces), "pieces": len(pieces)}


async def tools():
    run = await Runner.run(agent(tools=[get_weather]), "What is the weather?")
    return {"text": run.final_output}


async def structured():
    run = await Runner.run(agent(output_type=Weather), "What is the weather?")
    return run.final_output.model_dump()


async def turns():
    first = await Runner.run(agent(), "One?")
    history = [*first.to_input_list(), {"role": "user", "content": "Two?"}]
    return {"text": (await Runner.run(agent(), history)).final_output}


print(json.dumps(asyncio.run(globals()[sys.argv[1]]())))
