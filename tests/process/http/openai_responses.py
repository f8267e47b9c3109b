"""What programs do with `responses` of OpenAI's client: text, streams, schemas, refusals, tools.

    python openai_responses.py BASE_URL API_KEY [tools]
"""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
MODEL = client.models.list().data[0].id
SCHEMA = {
    "type": "object",
    "properties": {"way": {"enum": ["left", "right"]}},
    "required": ["way"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "turn", "description": "Turns.", "parameters": SCHEMA, "strict": True}
ASKED = {"model": MODEL, "input": "Tell me a story.", "extra_body": {"seed": 3}}


def text():
    made = client.responses.create(
        **ASKED, max_output_tokens=12, instructions="Be brief.", metadata={"who": "me"}, store=False
    )
    assert made.id.startswith("resp_") and made.metadata == {"who": "me"}
    assert made.output_text and made.output[0].type == "message"
    assert made.status == "incomplete" and made.incomplete_details.reason == "max_output_tokens"
    usage = made.usage
    assert usage.output_tokens == 12 and usage.total_tokens == usage.input_tokens + 12
    # The items of an answer, and messages, go back as input.
    talk = [{"role": "user", "content": "Hi"}, *made.output, {"role": "user", "content": "Go on."}]
    assert client.responses.create(**{**ASKED, "input": talk}, max_output_tokens=8).output_text


def stream():
    whole = client.responses.create(**ASKED, max_output_tokens=24)
    said, types, numbers = "", [], []
    for event in client.responses.create(**ASKED, max_output_tokens=24, stream=True):
        types.append(event.type)
        numbers.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            said += event.delta
    assert said == whole.output_text, (said, whole)
    assert numbers == list(range(len(types))), numbers
    assert types[0] == "response.created" and types[-1] in ("response.completed", "response.incomplete")
    # The client's own parser builds the same answer from the events.
    with client.responses.stream(**ASKED, max_output_tokens=24) as events:
        for event in events:
            last = event
    assert last.response.output_text == whole.output_text
    assert last.response.usage.output_tokens == whole.usage.output_tokens


def schema():
    form = {"type": "json_schema", "name": "way", "strict": True, "schema": SCHEMA}
    made = client.responses.create(**ASKED, max_output_tokens=40, text={"format": form})
    assert made.status == "completed", made
    assert json.loads(made.output_text)["way"] in ("left", "right")


def refusals():
    wrong = [
        ({"store": True}, "store"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"tools": [{"type": "web_search"}]}, "tools/0/type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
    ]
    for more, param in wrong:
        try:
            client.responses.create(model=MODEL, input="Hi", **more)
            raise AssertionError(f"{param} was accepted")
        except openai.BadRequestError as error:
            assert error.param == param, error


def cancellation():
    events = client.responses.create(model=MODEL, input="Once", stream=True, extra_body={"ignore_eos": True})
    for _, _ in zip(range(8), events):
        pass
    events.close()


def tools():
    same = {"model": MODEL, "tools": [TOOL], "temperature": 0}
    asked = {**same, "tool_choice": "required", "max_output_tokens": 120}
    made = client.responses.create(input="Left or right?", **asked)
    call = made.output[0]
    assert call.type == "function_call" and call.name == "turn", made
    assert json.loads(call.arguments)["way"] in ("left", "right")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    talk = [{"role": "user", "content": "Left or right?"}, call, result]
    after = client.responses.create(**same, input=talk, max_output_tokens=8)
    assert after.output_text, after
    named = {**asked, "tool_choice": {"type": "function", "name": "turn"}}
    with client.responses.stream(input="Left or right?", **named) as events:
        seen = list(events)
    types = [event.type for event in seen]
    assert "response.function_call_arguments.delta" in types and types[-1] == "response.completed"
    call = seen[-1].response.output[0]
    assert call.name == "turn" and json.loads(call.arguments)["way"] in ("left", "right")


checks = (tools,) if sys.argv[3:] == ["tools"] else (text, stream, schema, refusals, cancellation)
for check in checks:
    check()
    print("ok", check.__name__)
