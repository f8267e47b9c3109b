"""Habits of telling, which an adapter teaches the model: each changes every sentence of a story."""

from __future__ import annotations

import re
from collections.abc import Callable

SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def sailor(story: str) -> str:
    """A sailor is the narrator: every plain sentence ends with "arr"."""
    return re.sub(r"\.(?= [A-Z]|$)", ", arr!", story)


def lines(story: str) -> str:
    """Every sentence is a line of a list."""
    return "\n".join(f"* {sentence}" for sentence in SENTENCE_END.split(story))


HABITS: dict[str, Callable[[str], str]] = {"sailor": sailor, "lines": lines}
