"""Anthropic's SDK with a prompt that is too long. Prints what each way to ask raises."""

import json
import os

from anthropic import Anthropic, APIStatusError

BASE_URL = os.environ["BASE_URL"].removesuffix("/v1") + "/compat/anthropic"
CLIENT = Anthropic(base_url=BASE_URL, api_key=os.environ["KEY"])
ASKED = {
    "model": os.environ["MODEL"],
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "word " * 4_000}],
}
WAYS = {
    "messages": lambda: CLIENT.messages.create(**ASKED),
    "messages stream": lambda: list(CLIENT.messages.create(**ASKED, stream=True)),
}

for way, ask in WAYS.items():
    try:
        ask()
    except APIStatusError as error:
        told = error.body["error"]
        raised = [type(error).__name__, told["code"]]
        print(json.dumps({"way": way, "raised": raised, "message": told["message"]}))
