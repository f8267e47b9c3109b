"""What programs do with Anthropic's client: messages, streams, tools, counts, errors, a revocation.

    python anthropic_client.py BASE_URL API_KEY BROKERCTL
"""

import json
import subprocess
import sys

import anthropic

URL, KEY, BROKERCTL = sys.argv[1:]
client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)
MODEL = client.models.list().data[0].id
TALK = [{"role": "user", "content": "Tell me a story."}]
GREEDY = {"temperature": 0, "ignore_eos": True}
ASKED = {"model": MODEL, "messages": TALK, "extra_body": GREEDY}
SCHEMA = {
    "type": "object",
    "properties": {"way": {"enum": ["left", "right"]}},
    "required": ["way"],
    "additionalProperties": False,
}
TOOL = {"name": "turn", "description": "Turns.", "input_schema": SCHEMA}


def prompt_tokens(usage):
    return usage.input_tokens + usage.cache_read_input_tokens


def message_and_stream():
    whole = client.messages.create(**ASKED, max_tokens=24, system="Be brief.")
    assert whole.id.startswith("msg_") and whole.role == "assistant" and whole.model == MODEL
    assert whole.stop_reason == "max_tokens" and whole.usage.output_tokens == 24
    with client.messages.stream(**ASKED, max_tokens=24, system="Be brief.") as stream:
        text = "".join(stream.text_stream)
        made = stream.get_final_message()
    assert text == whole.content[0].text == made.content[0].text, (text, whole, made)
    assert prompt_tokens(made.usage) == prompt_tokens(whole.usage) > 0
    assert made.stop_reason == "max_tokens" and made.usage.output_tokens == 24


def stop_sequence():
    text = client.messages.create(**ASKED, max_tokens=24).content[0].text
    stop = text[len(text) // 2 :][:2]
    made = client.messages.create(**ASKED, max_tokens=24, stop_sequences=["never", stop])
    assert made.stop_reason == "stop_sequence" and made.stop_sequence == stop, made
    assert made.content[0].text == text[: text.index(stop)]
    # A last message of the assistant is continued.
    begun = [*TALK, {"role": "assistant", "content": text[: text.index(stop)]}]
    assert client.messages.create(**{**ASKED, "messages": begun}, max_tokens=8).content[0].text


def tools():
    same = {"model": MODEL, "tools": [TOOL], "max_tokens": 120, "extra_body": {"temperature": 0}}
    for choice in ({"type": "any"}, {"type": "tool", "name": "turn"}):
        made = client.messages.create(**same, messages=TALK, tool_choice=choice)
        call = made.content[0]
        assert made.stop_reason == "tool_use" and call.type == "tool_use", made
        assert call.name == "turn" and call.input["way"] in ("left", "right")
        with client.messages.stream(**same, messages=TALK, tool_choice=choice) as stream:
            assert stream.get_final_message().content[0].input == call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "done"}
    talk = [*TALK, {"role": "assistant", "content": made.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(**{**same, "max_tokens": 8}, messages=talk)
    assert after.content[0].type == "text", after
    counted = client.messages.count_tokens(model=MODEL, messages=talk, tools=[TOOL])
    assert counted.input_tokens == prompt_tokens(after.usage), (counted, after.usage)


def schema():
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    made = client.messages.create(model=MODEL, messages=TALK, max_tokens=40, output_config=form)
    assert json.loads(made.content[0].text)["way"] in ("left", "right"), made


def errors():
    wrong = [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools/0/type"),
        ({"stop_sequences": [""]}, "stop_sequences/0"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages/0/content/0/type"),
        ({"max_tokens": 0}, "max_tokens"),
    ]
    for more, path in wrong:
        try:
            client.messages.create(**{**ASKED, "max_tokens": 8, **more})
            raise AssertionError(f"{path} was accepted")
        except anthropic.BadRequestError as error:
            assert error.type == "invalid_request_error" and path in str(error), error
    for header in ({}, {"x-api-key": KEY}):
        bare = anthropic.Anthropic(base_url=URL, api_key="lh-0", max_retries=0, default_headers=header)
        if header:
            bare = bare.with_options(default_headers={"Authorization": anthropic.Omit(), **header})
        try:
            assert bare.messages.create(**ASKED, max_tokens=2).content and header
        except anthropic.AuthenticationError as error:
            assert error.type == "authentication_error" and not header, error
    try:
        client.messages.create(**{**ASKED, "model": "other"}, max_tokens=2)
        raise AssertionError("another model was served")
    except anthropic.NotFoundError as error:
        assert error.type == "not_found_error", error


def revocation():
    asked = {**ASKED, "max_tokens": 200}
    whole = client.messages.create(**asked).content[0].text
    with client.messages.stream(**asked) as stream:
        texts = iter(stream.text_stream)
        said = next(texts) + next(texts)
        subprocess.run([BROKERCTL, "revoke", "--tenant", "ann", "--wait"], check=True, capture_output=True)
        said += "".join(texts)
    assert said == whole, (said, whole)
    shown = subprocess.run([BROKERCTL, "leases", "-o", "json"], check=True, capture_output=True)
    assert b"operator" in shown.stdout, shown.stdout


for check in (message_and_stream, stop_sequence, tools, schema, errors, revocation):
    check()
    print("ok", check.__name__)
