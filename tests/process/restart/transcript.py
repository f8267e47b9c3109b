#!/usr/bin/env python3
"""Runs the transcripts of a document: every ```console block, in order, in one shell.

    transcript.py DOCUMENT.md           Compare what the commands print with what the document shows
    transcript.py DOCUMENT.md --record  Write what they print into the document

A line "$ COMMAND" is a command, "> …" continues it, and the lines up to the next command are its
output. Words with a digit are equal to each other, since ids, times and sizes differ between runs,
and so are the singular and the plural behind one, and white space. A command that is run for its effect and shows nothing is compared, too. A
command must succeed, unless its output ends with the line "[exit code N]".
"""

import pathlib
import re
import signal
import subprocess
import sys

MARK = "end-of-command-7b1f"
TIMEOUT_S = 60


class Shell:
    def __init__(self):
        self.process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, command):
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"no end after {TIMEOUT_S} s: {command}"))
        signal.alarm(TIMEOUT_S)
        self.process.stdin.write(f"{command}\ncode=$?; echo; echo {MARK} $code\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                break
            lines.append(line.rstrip("\n"))
        else:
            sys.exit(f"the shell ended in: {command}")
        signal.alarm(0)
        while lines and not lines[-1]:
            lines.pop()
        code = int(line.split()[1])
        return lines + ([f"[exit code {code}]"] if code else [])


def steps(lines):
    """(command, first line of its output, line behind it) of each command in the document."""
    inside, found, command, begin = False, [], None, 0
    for number, line in enumerate([*lines, "```"]):
        ends = line == "```" or (inside and line.startswith("$ "))
        if inside and ends and command is not None:
            found.append((command, begin, number))
            command = None
        if line == "```console":
            inside = True
        elif line.startswith("```"):
            inside = False
        elif inside and line.startswith("$ "):
            command, begin = line[2:], number + 1
        elif inside and line.startswith("> ") and command is not None and begin == number:
            command, begin = command + "\n" + line[2:], number + 1
    return found


def masked(lines):
    numbers = [" ".join(re.sub(r"\S*\d\S*", "#", line).split()) for line in lines if line.strip()]
    return [re.sub(r"# ([a-z]+)s\b", r"# \1", line) for line in numbers]


def main(path, record):
    lines = pathlib.Path(path).read_text().split("\n")
    shell, failures, written = Shell(), 0, list(lines)
    found = steps(lines)
    if not found:
        sys.exit(f"{path} has no command to run")
    shift = 0
    for command, begin, end in found:
        printed = shell.run(command)
        if record:
            written[begin + shift:end + shift] = printed
            shift += len(printed) - (end - begin)
        elif masked(printed) != masked(lines[begin:end]):
            failures += 1
            print(f"{path}:{begin}: $ {command}\nthe document shows:", *lines[begin:end],
                  "it printed:", *printed, sep="\n")
    if record:
        pathlib.Path(path).write_text("\n".join(written))
    print(f"{path}: {len(found)} commands, {failures} with other output")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--record" in sys.argv[2:]))
