"""LangChain with a prompt that is too long. Prints what each way to ask raises."""

import json
import os

from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI

ASKED = {
    "base_url": os.environ["BASE_URL"],
    "api_key": os.environ["KEY"],
    "model": os.environ["MODEL"],
}
CHAT, RESPONSES = ChatOpenAI(**ASKED), ChatOpenAI(**ASKED, use_responses_api=True)
LONG = "word " * 4_000
WAYS = {
    "chat": lambda: CHAT.invoke(LONG),
    "chat stream": lambda: list(CHAT.stream(LONG)),
    "responses": lambda: RESPONSES.invoke(LONG),
    "responses stream": lambda: list(RESPONSES.stream(LONG)),
}

for way, ask in WAYS.items():
    try:
        ask()
    except ContextOverflowError as error:
        raised = ["ContextOverflowError", error.code]
        print(json.dumps({"way": way, "raised": raised, "message": error.message}))
