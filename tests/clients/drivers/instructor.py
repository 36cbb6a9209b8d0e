"""instructor over OpenAI's SDK. Prints what an ability gave as one line of JSON."""

import json
import os
import sys

import instructor
from openai import OpenAI
from pydantic import BaseModel

PLAIN = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=0)
CLIENT = instructor.from_openai(PLAIN)
MODEL = os.environ["MODEL"]


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


def _asked(*contents):
    roles = ("user", "assistant") * len(contents)
    return [
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=False)
    ]


def chat():
    found = CLIENT.chat.completions.create(
        model=MODEL, response_model=None, messages=_asked("Say it.")
    )
    return {"text": found.choices[0].message.content}


def stream():
    pieces = [
        piece.model_dump()
        for piece in CLIENT.chat.completions.create_partial(
            model=MODEL, response_model=Weather, messages=_asked("What is the weather?")
        )
    ]
    return {**pieces[-1], "pieces": len(pieces)}


def structured():
    found = CLIENT.chat.completions.create(
        model=MODEL,
        response_model=Weather,
        max_retries=0,
        messages=_asked("What is the weather?"),
    )
    return found.model_dump()


def turns():
    first = CLIENT.chat.completions.create(
        model=MODEL, response_model=None, messages=_asked("One?")
    )
    said = first.choices[0].message.content
    second = CLIENT.chat.completions.create(
        model=MODEL, response_model=None, messages=_asked("One?", said, "Two?")
    )
    return {"text": second.choices[0].message.content}


print(json.dumps(globals()[sys.argv[1]]()))
