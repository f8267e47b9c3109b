#!/usr/bin/env python3
"""accept.py JUDGE FOLDER: compiles every JSON schema in a folder, as it is and with "strict": false, and
prints how many are accepted and why the others are not. Texts that a strict grammar generates are judged by
python3-jsonschema. The schemas stay outside this tree.

Exit status 1: a generated text is invalid under its schema.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

import jsonschema

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402

MAX_BYTES = 32 << 10  # SamplingParams::kMaxGrammarBytes
WALKS = 4
WALKED = 8  # texts are generated for every eighth schema; large grammars are slow to follow
KEYWORDS = {"$schema", "type", "properties", "$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "enum", "items"}


def schemas_in(folder):
    """(path, schema) of every file that is a schema; each content once."""
    seen = set()
    for path in sorted(pathlib.Path(folder).rglob("*.json")):
        try:
            schema = json.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, OSError):
            continue
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        if isinstance(schema, dict) and KEYWORDS & schema.keys() and text not in seen:
            seen.add(text)
            yield path, schema, text


def cause(error):
    """The error without its place and its values."""
    error = re.sub(r"^JSON schema(, #\S*)?: ", "", error)
    if error.startswith("there is no '"):
        return "a reference into another document" if "#" not in error.split("'")[1][:1] else "a dangling reference"
    if "may both fit" in error:
        return "oneOf whose branches may overlap"
    if "at byte" in error or "is supported at the front" in error:
        error = f"pattern: {error}"
    return re.sub(r"\d+", "N", error)[:90]


def ask(judge, texts, strict):
    asked = [{"schema": text, "texts": [], "walks": WALKS if strict and number % WALKED == 0 else 0, "seed": number, "strict": strict}
             for number, text in enumerate(texts)]
    done = subprocess.run([judge], input=json.dumps(asked), capture_output=True, check=True, encoding="utf-8")
    return json.loads(done.stdout)


def invalid_texts(schema, answer):
    try:
        judge = compare.validator(schema)
        return [text for text in answer.get("walks", []) if not judge.is_valid(json.loads(text))]
    except (jsonschema.exceptions.SchemaError, jsonschema.exceptions.RefResolutionError, re.error) as error:
        print(f"  not judged: {str(error):.90}")
        return []


def report(mode, found, answers):
    accepted = [answer for answer in answers if "error" not in answer]
    print(f"{mode}: {len(accepted)} of {len(found)} accepted")
    causes = collections.defaultdict(list)
    for (path, _, _), answer in zip(found, answers, strict=True):
        if "error" in answer:
            causes[cause(answer["error"])].append((path.name, answer["error"]))
    for why, names in sorted(causes.items(), key=lambda entry: -len(entry[1])):
        print(f"  {len(names):4} {why}   ({names[0][0]}: {names[0][1]:.140})")
    times = sorted(answer["us"] for answer in answers)
    if times:
        print(f"  CPU of compiling: p50 {times[len(times) // 2]} us, p99 {times[len(times) * 99 // 100]} us, "
              f"max {times[-1]} us; most steps of an accepted one {max((a['steps'] for a in accepted), default=0)}")


def main():
    everything = list(schemas_in(sys.argv[2]))
    found = [entry for entry in everything if len(entry[2].encode()) <= MAX_BYTES]
    print(f"{len(everything)} schemas, {len(everything) - len(found)} of them above {MAX_BYTES} bytes without blanks")
    answers = ask(sys.argv[1], [text for _, _, text in found], True)
    report("strict", found, answers)
    report("lenient", found, ask(sys.argv[1], [text for _, _, text in found], False))
    n_texts, n_wrong = 0, 0
    for (path, schema, _), answer in zip(found, answers, strict=True):
        n_texts += len(answer.get("walks", []))
        for text in invalid_texts(schema, answer):
            n_wrong += 1
            print(f"  invalid under {path}: {text[:200]!r}")
    print(f"{n_texts} generated texts, {n_wrong} invalid (jsonschema {jsonschema.__version__})")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
