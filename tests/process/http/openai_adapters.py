"""What programs do with OpenAI's client and adapters: a tenant's own, shared ones, those of others.

    python openai_adapters.py BASE_URL API_KEY BROKERCTL SOCKET

"tuned" and "other" are the tenant's, which may have one loaded; "shared" is shared, and "theirs" is
another tenant's.
"""

import subprocess
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
ASKED = {"messages": [{"role": "user", "content": "Tell me a story."}], "seed": 3, "max_tokens": 24}


def text(model, **more):
    return client.chat.completions.create(**{**ASKED, **more}, model=model).choices[0].message.content


def refusal(model):
    try:
        text(model)
        raise AssertionError(f"{model} was answered")
    except openai.NotFoundError as error:
        return str(error.body).replace(model, "?")


def content(chunks):
    return "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)


models = client.models.list().data
base = models[0].id
parents = {model.id: (model.model_extra or {}).get("parent") for model in models}
assert parents == {base: None, "other": base, "shared": base, "tuned": base}, parents
assert client.models.retrieve("tuned").id == "tuned"
print("ok models")

texts = {name: text(name) for name in (base, "tuned", "shared")}
assert len(set(texts.values())) == 3, texts
assert content(client.chat.completions.create(**ASKED, model="tuned", stream=True)) == texts["tuned"]
made = client.completions.create(model="tuned", prompt="Once", max_tokens=4)
assert made.model == "tuned" and made.usage.completion_tokens == 4
said = client.responses.create(model="tuned", input="Tell me a story.", max_output_tokens=4)
assert said.model == "tuned" and said.output_text
message = {**ASKED, "model": "tuned", "max_tokens": 4}
assert client.post("/messages", body=message, cast_to=object)["model"] == "tuned"
print("ok texts")

assert "model_not_found" in refusal("theirs") and refusal("theirs") == refusal("no-such-one")
print("ok foreign")

LONG = {**ASKED, "model": "tuned", "max_tokens": 200, "extra_body": {"ignore_eos": True}}
undisturbed = content(client.chat.completions.create(**LONG, stream=True))
stream = client.chat.completions.create(**LONG, stream=True)
begun = content(chunk for _, chunk in zip(range(10), stream))
try:
    text("other")
    raise AssertionError("the tenant may have one adapter loaded")
except openai.RateLimitError as error:
    assert error.code == "QuotaAdapters" and int(error.response.headers["retry-after"]) > 0, error
control = [sys.argv[3], "--socket", sys.argv[4]]
subprocess.run([*control, "revoke", "--adapter", "tuned"], check=True, stdout=subprocess.DEVNULL)
assert begun + content(stream) == undisturbed  # loaded again, and continued
print("ok revoked")
