#!/usr/bin/env python3
"""compare.py RENDERER…: renders the templates beside this file with our interpreter, which the command
RENDERER starts (it may begin with an emulator), and with Jinja2 as Hugging Face sets it up, and
compares the texts.

expressions.txt  one template a line, over the variables of variables.json
refused.txt      the same, templates that both must refuse
templates/       whole templates, over the same variables
../templates/    chat templates of model families, with inputs of their own

Exit status 1: a text differs. 77: python3-jinja2 is not installed and nothing was compared.
"""
import datetime
import json
import pathlib
import subprocess
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ImportError:
    print("skipped: python3-jinja2 is not installed; run tools/setup --ci")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
NOW_UNIX_S = 1732104000


class Generation(jinja2.ext.Extension):
    """The tag `generation` of Hugging Face; its text stays."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def with_jinja2(case):
    now = datetime.datetime.fromtimestamp(case["now_unix_s"], datetime.timezone.utc)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = now.strftime
    try:
        return {"text": environment.from_string(case["template"]).render(**case["variables"])}
    except Exception as error:  # what a template raises is the result
        return {"error": f"{type(error).__name__}: {error}"}


def own_cases():
    variables = json.loads((HERE / "variables.json").read_text(encoding="utf-8"))

    def case(name, template, refused=False):
        return {"name": name, "template": template, "variables": variables, "now_unix_s": NOW_UNIX_S,
                "refused": refused}

    for name, refused in (("expressions.txt", False), ("refused.txt", True)):
        lines = (HERE / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if line and not line.startswith("##"):
                yield case(f"{name}:{number}", line, refused)
    for path in sorted((HERE / "templates").glob("*.jinja")):
        yield case(f"templates/{path.name}", path.read_text(encoding="utf-8"))


def family_cases():
    for path in sorted((HERE.parent / "templates").glob("*.jinja")):
        for test in json.loads(path.with_suffix(".json").read_text(encoding="utf-8")):
            variables = {"messages": test["messages"], "tools": test.get("tools"), "documents": None,
                         "add_generation_prompt": test.get("add_generation_prompt", True)}
            for name in ("bos", "eos"):
                if test.get(name) is not None:
                    variables[name + "_token"] = test[name]
            variables.update(test.get("extra", {}))
            yield {"name": f"{path.name}: {test['title']}", "template": path.read_text(encoding="utf-8"),
                   "variables": variables, "now_unix_s": test.get("now", 0), "refused": "refused" in test}


def agree(case, ours, expected):
    """Equal texts; or both refuse a template that is meant to be refused, with the same text if it is the
    template's own."""
    if case["refused"] != ("error" in expected):
        return False
    if not case["refused"]:
        return ours == expected
    own_words = expected["error"].removeprefix("TemplateError: ")
    return "error" in ours and (own_words == expected["error"] or ours["error"].endswith(own_words))


def main():
    cases = [*own_cases(), *family_cases()]
    answer = subprocess.run(sys.argv[1:], input=json.dumps(cases), capture_output=True, check=True,
                            encoding="utf-8")
    differences = 0
    for case, ours in zip(cases, json.loads(answer.stdout), strict=True):
        expected = with_jinja2(case)
        if not agree(case, ours, expected):
            differences += 1
            print(f"{case['name']}: {case['template']!r:.300}\n  ours   {ours}\n  Jinja2 {expected}")
    print(f"{len(cases)} templates compared with Jinja2 {jinja2.__version__}, {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
