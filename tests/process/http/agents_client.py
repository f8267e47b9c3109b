"""What agents do: tools in a chat, a call, its result, and the answer.

    python agents_client.py BASE_URL API_KEY

The served model follows no instructions, so calls are forced. What it writes of its own accord, after a
result, is only text.
"""

import asyncio
import sys
from typing import Literal

import agents
import langchain_openai
import openai
import pydantic
import pydantic_ai
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL, KEY = sys.argv[1:]
ASK = "Left or right?"
Way = Literal["left", "right"]


class Turn(pydantic.BaseModel):
    """A turn."""

    way: Way


def langchain():
    chat = langchain_openai.ChatOpenAI(
        base_url=URL, api_key=KEY, model="org/chat", temperature=0, max_tokens=60, max_retries=0
    )
    forced = chat.bind_tools([Turn], tool_choice="required")
    asked = [HumanMessage(ASK)]
    said = forced.invoke(asked)
    (call,) = said.tool_calls
    assert call["name"] == "Turn" and call["args"]["way"] in ("left", "right"), said
    streamed = None
    for chunk in forced.stream(asked):
        streamed = chunk if streamed is None else streamed + chunk
    assert [one["args"] for one in streamed.tool_calls] == [call["args"]], streamed
    asked += [said, ToolMessage("done", tool_call_id=call["id"])]
    after = chat.bind_tools([Turn]).invoke(asked)
    assert after.response_metadata["model_name"] == "org/chat", after
    assert after.content or after.tool_calls, after
    made = chat.with_structured_output(Turn, method="function_calling").invoke(ASK)
    assert made.way in ("left", "right"), made


def pydantic_output():
    model = OpenAIChatModel("story", provider=OpenAIProvider(base_url=URL, api_key=KEY))
    agent = pydantic_ai.Agent(model, output_type=Turn, retries=0)
    made = agent.run_sync(ASK, model_settings={"max_tokens": 60, "temperature": 0})
    assert made.output.way in ("left", "right"), made
    assert made.response.model_name == "story", made.response


def openai_agents():
    calls = []

    @agents.function_tool
    def turn() -> str:
        """Turns."""
        calls.append("turn")
        return "done"

    client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0)
    agent = agents.Agent(
        name="guide",
        model=agents.OpenAIChatCompletionsModel(model="story", openai_client=client),
        model_settings=agents.ModelSettings(tool_choice="required", max_tokens=60, temperature=0),
        tools=[turn],
    )
    made = asyncio.run(agents.Runner.run(agent, "Go", max_turns=2))
    assert calls == ["turn"], made.new_items
    kinds = [type(item).__name__ for item in made.new_items]
    assert kinds == ["ToolCallItem", "ToolCallOutputItem", "MessageOutputItem"], kinds


for check in (langchain, pydantic_output, openai_agents):
    check()
    print("ok", check.__name__)
