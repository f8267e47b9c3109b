"""OpenAI's Python client through the deaths of three of four hosts: 32 texts at the same time, each read whole.

    python openai_through_deaths.py BIN_DIR
"""

import asyncio
import os
import sys

import openai

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
sys.path.insert(0, os.path.join(ROOT, "tests/checks/hosts"))
import cell

TEXTS = 32
TOKENS = 48
DEATHS_AFTER = (80, 200, 320)  # events of all streams
TOOL = {
    "type": "function",
    "function": {
        "name": "walk",
        "parameters": {
            "type": "object",
            "properties": {"way": {"enum": ["left", "right"]}, "why": {"type": "string"}},
            "required": ["way", "why"],
            "additionalProperties": False,
        },
    },
}
IGNORED_END = {"ignore_eos": True}


def asked(number):
    return [{"role": "user", "content": f"Tell me story {number}."}]


class Client:
    def __init__(self, address, key):
        self.api = openai.AsyncOpenAI(base_url=f"http://{address}/v1", api_key=key, max_retries=0)
        self.events = 0
        self.on_event = lambda: None

    def note_event(self):
        self.events += 1
        self.on_event()

    async def stream(self, number):
        chunks = await self.api.chat.completions.create(
            model=self.model, messages=asked(number), max_tokens=TOKENS, seed=number, stream=True,
            extra_body=IGNORED_END)
        text, ids = "", set()
        async for chunk in chunks:
            self.note_event()
            ids.add((chunk.id, chunk.created))
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
        assert len(ids) == 1, ids
        return text

    async def tools(self, number):
        made = await self.api.chat.completions.create(
            model=self.model, messages=asked(number), max_tokens=TOKENS, seed=number, tools=[TOOL],
            tool_choice={"type": "function", "function": {"name": "walk"}})
        [choice] = made.choices
        calls = choice.message.tool_calls or []
        return choice.finish_reason, choice.message.content, [one.function.arguments for one in calls]

    async def responses(self, number):
        events = await self.api.responses.create(
            model=self.model, input=f"Tell me story {number}.", max_output_tokens=TOKENS, stream=True,
            extra_body={**IGNORED_END, "seed": number})
        text, numbers = "", []
        async for event in events:
            self.note_event()
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
        assert numbers == list(range(len(numbers))), numbers
        assert event.response.output_text == text, event
        return text

    async def whole(self, number):
        made = await self.api.chat.completions.create(
            model=self.model, messages=asked(number), max_tokens=TOKENS, seed=number, logprobs=True, n=2,
            extra_body=IGNORED_END)
        return [(one.message.content, [token.logprob for token in one.logprobs.content]) for one in made.choices]

    async def read_all(self):
        self.model = (await self.api.models.list()).data[0].id
        kinds = (self.stream, self.tools, self.responses, self.whole)
        return await asyncio.gather(*(kinds[i % 4](i) for i in range(TEXTS)))


async def run(hosts, gateway):
    client = Client(gateway.address, hosts.key)
    undisturbed = await client.read_all()
    client.events, killed = 0, []

    def kill_in_turn():
        if len(killed) < len(DEATHS_AFTER) and client.events >= DEATHS_AFTER[len(killed)]:
            killed.append(hosts.hosts[len(killed)])
            killed[-1].kill()

    client.on_event = kill_in_turn
    disturbed = await client.read_all()
    assert len(killed) == 3, f"{client.events} events came"
    for i, (wanted, got) in enumerate(zip(undisturbed, disturbed)):
        assert wanted == got, f"text {i}: {got} instead of {wanted}"
    moved = {name for name, _, _ in gateway.moves()}
    print(f"ok {TEXTS} texts through {len(killed)} deaths, {len(moved)} of them moved")
    assert moved


with cell.Cell(sys.argv[1], os.path.join(ROOT, "tools/models/leasehold-stories-q8_0.gguf")) as system:
    system.add_hosts(4, "--slow-motion-us", "20")
    asyncio.run(run(system, system.add_gateway(listen="127.0.0.1:0")))
