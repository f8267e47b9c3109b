"""What the drivers of llama.cpp's programs share: running them, figures, tables and the report.

A driver measures; `leasehold-bench NAME` reads the report on its stdin, prints it, writes the files
of --out and checks the limits of --check. Needs Python 3.9 and nothing else.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

# Exit codes of common/errc.hpp.
EXIT_CODES = {"BadRequest": 10, "MalformedMessage": 11, "FileNotFound": 41, "ConnectionRefused": 46,
              "ConnectionLost": 47, "TimedOut": 48, "SystemError": 51}
LONGEST_RUN_S = 600
LOG_END_BYTES = 600
VERSION = "version: "


class Failure(Exception):
    """An error with a name of common/errc.hpp, or the exit code of another program of this tree."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.exit_code = EXIT_CODES.get(code, code)


class Programs:
    """llama.cpp's programs in a folder. Their logs are in a folder that the end of a `with` block removes."""

    def __init__(self, folder, names):
        self.folder = folder
        self.longest_run_s = LONGEST_RUN_S
        for name in names:
            if not os.access(self.path(name), os.X_OK):
                raise Failure("FileNotFound", f"no program {self.path(name)}; build llama.cpp's {name} and name its "
                              "folder with --peer")
        self.scratch = tempfile.TemporaryDirectory(prefix="peer-")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.scratch.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def log_path(self, name):
        return os.path.join(self.scratch.name, name + ".log")

    def start(self, name, *arguments):
        """Starts a program whose output goes to its log."""
        with open(self.log_path(name), "ab") as log:
            return subprocess.Popen([self.path(name), *arguments], stdout=log, stderr=log)

    def ended(self, name, status):
        with open(self.log_path(name), encoding="utf-8", errors="replace") as log:
            return Failure("ConnectionLost", f"{name} ended with {status}; its log ends: {log.read()[-LOG_END_BYTES:]}")

    def output_of(self, name, *arguments):
        """Runs the program to its end and returns its stdout."""
        with open(self.log_path(name), "ab") as log:
            try:
                done = subprocess.run([self.path(name), *arguments], stdout=subprocess.PIPE, stderr=log, check=False,
                                      timeout=self.longest_run_s)
            except subprocess.TimeoutExpired as error:
                raise Failure("TimedOut",
                              f"{name} runs for more than {self.longest_run_s:.0f} s; use a smaller model") from error
        if done.returncode != 0:
            raise self.ended(name, done.returncode)
        return done.stdout.decode(errors="replace")

    def version_of(self, name):
        text = self.output_of(name, "--version")
        with open(self.log_path(name), encoding="utf-8", errors="replace") as log:
            text += log.read()
        if VERSION not in text:
            raise Failure("MalformedMessage", f"{name} --version prints no version; use a llama.cpp that prints one")
        return text.split(VERSION, 1)[1].split("\n", 1)[0]


def compared(ours, peers):
    """The medians of both over their rounds, and ours divided by the peer's."""
    medians = [{name: statistics.median_low(one[name] for one in rounds) for name in rounds[0]}
               for rounds in (ours, peers)]
    return {"ours": medians[0], "peer": medians[1],
            "ratio": {name: value / medians[1][name] for name, value in medians[0].items()}}


def distribution(values_s):
    """Of seconds, in milliseconds."""
    values = sorted(1e3 * value for value in values_s)
    if not values:
        return {"n": 0}
    quantiles = {f"p{share}": values[max(1, math.ceil(share / 100 * len(values) - 1e-9)) - 1] for share in (50, 90, 99)}
    return {"n": len(values), **quantiles, "max": values[-1]}


def table(titles, sides, rows):
    """Text in columns. `sides` has l for a column that is aligned to the left, and r for one to the right."""
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    return "".join("  ".join(cell.ljust(width) if side == "l" else cell.rjust(width)
                             for side, cell, width in zip(sides, line, widths)).rstrip() + "\n" for line in lines)


def in_range(least, most):
    """The type of an option with an integer from `least` to `most`."""
    def parse(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a number from {least} to {most}")
        return int(text)
    return parse


def add_report_options(parser):
    parser.add_argument("--bin-dir", required=True, help="Directory of the programs")
    parser.add_argument("--out", metavar="DIR", help="Directory for the report as JSON and text")
    parser.add_argument("--check", metavar="LIMITS",
                        help="Exit with 1 unless the figures are within the limits of this file")


class Reporter:
    """`leasehold-bench NAME`, which opens the files of --out and --check at its start."""

    def __init__(self, name, options):
        command = [os.path.join(options.bin_dir, "leasehold-bench"), name]
        for option in ("out", "check"):
            if getattr(options, option):
                command += ["--" + option, getattr(options, option)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def require_running(self):
        """Ends the driver if the program has refused a file already."""
        if self.process.poll() is not None:
            sys.exit(self.process.returncode)

    def cancel(self):
        self.process.kill()
        self.process.communicate()

    def finish(self, report, text):
        """Hands the report over, and returns the exit code."""
        try:
            self.process.communicate(json.dumps({"report": report, "text": text}).encode())
        except BrokenPipeError:
            self.process.wait()
        return self.process.returncode


def run(name, options, measure, text_of):
    """Measures and reports; returns the exit code. `measure(options, before_round)` returns the report."""
    reporter = Reporter(name, options)
    try:
        report = measure(options, reporter.require_running)
    except (Failure, OSError) as failure:
        reporter.cancel()
        print(f"leasehold-bench: {failure}", file=sys.stderr)
        return getattr(failure, "exit_code", EXIT_CODES["SystemError"])
    except KeyboardInterrupt:
        reporter.cancel()
        raise
    return reporter.finish(report, text_of(report))
