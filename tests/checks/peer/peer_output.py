"""What llama-bench and llama-batched-bench print, as JSON lines or as tables.

A fork may print only the tables, whose columns are those of llama.cpp; a table of llama-bench names no threads
where they are the default, and its version stands in a line below it.
"""

import json
import math
import re

import peer

BENCH, BATCHED = "llama-bench", "llama-batched-bench"
BATCHES = {8: "batch_8", 32: "batch_32"}
# Advice after output that cannot be read.
OTHER_LINES = "use a llama.cpp that prints JSON lines, or --peer-tables for one that prints only tables"
OTHER_TABLES = "use a llama.cpp whose tables have these columns"


def malformed(program, what, text, advice=OTHER_LINES):
    return peer.Failure("MalformedMessage", f'{program} printed {what}: "{text[:120]}"; {advice}')


def objects_in(output, program):
    """The lines that begin like an object. The programs also print empty lines and banners."""
    objects = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                objects.append(json.loads(line))
            except ValueError as error:
                raise malformed(program, "a line that is not JSON", line) from error
    if not objects:
        raise malformed(program, "no JSON line", output)
    return objects


def rows_in(output, program):
    """The rows of the last table, each as {title of the column: cell}."""
    titles, rows = None, []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            continue
        if all(cell and not cell.strip("-:") for cell in cells):
            rows = []
        elif titles is None or len(cells) != len(titles) or not any(character.isdigit() for character in line):
            titles = cells
        else:
            rows.append(dict(zip(titles, cells)))
    if not rows:
        raise malformed(program, "no table", output, OTHER_TABLES)
    return rows


def number_in(cell):
    """The number that a cell begins with ("55.50 ± 0.10"), or None."""
    found = re.match(r"\d+(\.\d+)?", cell or "")
    return float(found.group()) if found else None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def usable(speed, threads_ran, threads):
    return threads_ran == threads and is_number(speed) and math.isfinite(speed) and speed > 0


def parse_bench(output, threads):
    """(version, format, figures) of one run of llama-bench with a prompt and an answer."""
    figures = {}
    for one in objects_in(output, BENCH):
        words = [one.get(field) for field in ("build_commit", "build_number", "model_type")]
        counts = [one.get(field) for field in ("n_prompt", "n_gen")]
        if not usable(one.get("avg_ts"), one.get("n_threads"), threads) or not all(map(is_number, counts)) or not all(
                isinstance(word, (str, int)) for word in words):
            raise malformed(BENCH, f"no usable result for {threads} threads", json.dumps(one))
        if counts[0] > 0 and counts[1] == 0:
            figures["prefill"] = one["avg_ts"]
        if counts[0] == 0 and counts[1] > 0:
            figures["decode"] = one["avg_ts"]
    return f"{words[0]} ({words[1]})", words[2], complete_bench(figures, output, OTHER_LINES)


def parse_bench_table(output, threads):
    """As parse_bench, of the table."""
    figures = {}
    for row in rows_in(output, BENCH):
        speed = number_in(row.get("t/s"))
        test = re.fullmatch(r"(pp|tg)\d+", row.get("test", ""))
        if not test or not row.get("model") or not usable(speed, number_in(row.get("threads", str(threads))), threads):
            raise malformed(BENCH, f"no usable result for {threads} threads", json.dumps(row), OTHER_TABLES)
        figures["prefill" if test.group(1) == "pp" else "decode"] = speed
    build = re.search(r"(?m)^build: (.+)$", output)
    version = build.group(1) if build else "of an unknown version"
    return version, row["model"], complete_bench(figures, output, OTHER_TABLES)


def complete_bench(figures, output, advice):
    if len(figures) != 2:
        raise malformed(BENCH, "no result for the prompt or none for the answer", output, advice)
    return figures


def parse_batches(output, threads):
    """The figures of one run of llama-batched-bench."""
    figures = {}
    for one in objects_in(output, BATCHED):
        if not usable(one.get("speed_tg"), one.get("n_threads"), threads) or not is_number(one.get("pl")):
            raise malformed(BATCHED, f"no usable result for {threads} threads", json.dumps(one))
        if one["pl"] in BATCHES:
            figures[BATCHES[one["pl"]]] = one["speed_tg"]
    return complete_batches(figures, output, BATCHES, OTHER_LINES)


def parse_batches_table(output, threads, batches=BATCHES):
    """As parse_batches, of the table, which names no threads. `batches`: the figure of each batch size."""
    figures = {}
    for row in rows_in(output, BATCHED):
        speed, batch = number_in(row.get("S_TG t/s")), number_in(row.get("B"))
        if batch is None or not usable(speed, threads, threads):
            raise malformed(BATCHED, "no usable result", json.dumps(row), OTHER_TABLES)
        if batch in batches:
            figures[batches[batch]] = speed
    return complete_batches(figures, output, batches, OTHER_TABLES)


def complete_batches(figures, output, batches, advice):
    for batch, name in batches.items():
        if name not in figures:
            raise malformed(BATCHED, f"no result for a batch of {batch}", output, advice)
    return figures
