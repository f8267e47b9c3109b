#!/usr/bin/env python3
"""Write pins.json beside this file: what llama.cpp computes for the texts here with one model.

    python3 make_pins.py MODEL.gguf --library LIBRARY

Needs the PyPI package llama-cpp-python and memory for the weights in F32. Each text is read into an
empty F32 cache without flash attention, from the file as it is and from a copy with its weights
expanded to F32, for which llama.cpp rounds no activations.
"""
import argparse
import ctypes
import datetime
import hashlib
import json
import os
import pathlib
import tempfile

import llama_cpp
import numpy

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ("prose.txt", "code.txt", "languages.txt", "chat.json")
TOP = 5
F32 = 0  # GGML_TYPE_F32 and LLAMA_FTYPE_ALL_F32


def load(path):
    return llama_cpp.Llama(str(path), n_ctx=512, logits_all=True, flash_attn=False, type_k=F32,
                           type_v=F32, n_threads=2, n_threads_batch=2, verbose=False)


def expanded(path, directory):
    """A copy of the model with all weights in F32."""
    copy = os.path.join(directory, "f32.gguf")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = F32
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(str(path).encode(), copy.encode(), ctypes.byref(params)):
        raise SystemExit(f"make_pins: llama.cpp cannot expand {path}")
    return copy


def prompt(name, model):
    """The text of a file; messages are rendered with the template of the model."""
    text = (HERE / name).read_text(encoding="utf-8")
    if not name.endswith(".json"):
        return text
    bos, eos = (model.detokenize([token], special=True).decode()
                for token in (model.token_bos(), model.token_eos()))
    template = llama_cpp.llama_chat_format.Jinja2ChatFormatter(
        template=model.metadata["tokenizer.chat_template"], bos_token=bos, eos_token=eos)
    return template(messages=json.loads(text)).prompt


def positions(model, tokens):
    """Per position: log-probability of the next token (0 at the end), then the best tokens."""
    model.reset()
    model.eval(tokens)
    rows = []
    for i, logits in enumerate(model.scores[:len(tokens)].astype(numpy.float64)):
        highest = logits.max()
        odds = logits - highest - numpy.log(numpy.exp(logits - highest).sum())
        following = odds[tokens[i + 1]] if i + 1 < len(tokens) else 0.0
        best = numpy.argsort(-odds, kind="stable")[:TOP]
        rows.append([round(following, 5), [[int(t), round(odds[t], 5)] for t in best]])
    return rows


def written(source, texts):
    """One line per position, so that a diff is readable."""
    parts = []
    for text in texts:
        lines = [f'"{key}": {json.dumps(text[key])}' for key in ("file", "prompt", "tokens")]
        for key in ("as_stored", "expanded"):
            rows = ",\n".join(json.dumps(row) for row in text[key])
            lines.append(f'"{key}": [\n{rows}\n]')
        parts.append("{\n" + ",\n".join(lines) + "\n}")
    return ('{"source": ' + json.dumps(source, indent=1) + ',\n"texts": [\n'
            + ",\n".join(parts) + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path, help="Model file")
    parser.add_argument("--library", required=True,
                        help="Version and build flags of llama.cpp, for the record")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        stored, exact = load(arguments.model), load(expanded(arguments.model, directory))
        texts = []
        for name in TEXTS:
            chat = name.endswith(".json")
            text = prompt(name, stored)
            adds_bos = stored.metadata.get("tokenizer.ggml.add_bos_token") == "true"
            tokens = stored.tokenize(text.encode(), add_bos=adds_bos, special=chat)
            texts.append({"file": name, "prompt": text if chat else "", "tokens": tokens,
                          "as_stored": positions(stored, tokens),
                          "expanded": positions(exact, tokens)})
    source = {"model": arguments.model.name,
              "model_sha256": hashlib.sha256(arguments.model.read_bytes()).hexdigest(),
              "package": "llama-cpp-python " + llama_cpp.__version__, "library": arguments.library,
              "date": datetime.date.today().isoformat(),
              "command": f"make_pins.py {arguments.model.name} --library LIBRARY"}
    (HERE / "pins.json").write_text(written(source, texts), encoding="utf-8")


if __name__ == "__main__":
    main()
