"""OpenAI's SDK with a prompt that is too long. Prints what each way to ask raises."""

import json
import os

from openai import APIError, OpenAI

CLIENT = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"])
LONG = "word " * 4_000
CHAT = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": LONG}]}
RESPONSE = {"model": os.environ["MODEL"], "input": LONG}
WAYS = {
    "chat": lambda: CLIENT.chat.completions.create(**CHAT),
    "chat stream": lambda: list(CLIENT.chat.completions.create(**CHAT, stream=True)),
    "responses": lambda: CLIENT.responses.create(**RESPONSE),
    "responses stream": lambda: list(CLIENT.responses.create(**RESPONSE, stream=True)),
}

for way, ask in WAYS.items():
    try:
        ask()
    except APIError as error:
        raised = type(error).__name__
        print(json.dumps({"way": way, "raised": [raised, error.code], "message": error.message}))
