"""Fails when a query of the rules or of the board names a metric that no page exports, or does not parse.

exported_names.py PROMETHEUS_URL RULES BOARD PAGE...
"""
import json
import re
import sys
import urllib.parse
import urllib.request


def exported(pages):
    names = set()
    for page in pages:
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", open(page).read(), re.MULTILINE):
            names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def main(prometheus, rules, board, *pages):
    names = exported(pages)
    board = json.load(open(board))
    variables = [each for each in board["templating"]["list"] if each["type"] == "query"]
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for variable in variables:
        queries = [query.replace("$" + variable["name"], ".*") for query in queries]
    if unknown := [query for query in queries if "$" in query]:
        sys.exit(f"a variable that the board does not have: {unknown}")
    texts = [*queries, *(variable["query"] for variable in variables), open(rules).read()]
    used = set(re.findall(r"\bleasehold_[a-z0-9_]+", " ".join(texts)))
    missing = sorted(used - names)
    if missing or not used:
        sys.exit(f"not exported: {missing} of {len(used)}")
    for query in queries:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?query={urllib.parse.quote(query)}") as reply:
            if json.load(reply)["status"] != "success":
                sys.exit(f"does not run: {query}")
    print(f"{len(used)} names are exported, {len(queries)} queries run")


main(*sys.argv[1:])
