"""Writes stories: a seeded walk through the grammar of words.py, openings.py and plots.py.

The same seed gives the same stories. Every sentence is a template of our own.
"""

from __future__ import annotations

import random
import re

import openings
import plots
import words

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
SENTENCE_START = re.compile(r"(^\"?|[.!?] \"?|\.\" \"?)([a-z])")
ARTICLE = re.compile(r"\b([Aa])~ (\w)")
REQUEST_SHARE = 0.10
BY_NAME_SHARE = 0.8

Slots = dict[str, str]


def pronouns(female: bool, prefix: str) -> Slots:
    """The pronoun slots of one character: he/him/his, or fe/fim/fis with prefix "f"; also capitalised."""
    he, him, his = ("she", "her", "her") if female else ("he", "him", "his")
    stem = {"he": he, "him": him, "his": his}
    names = {"he": "fe", "him": "fim", "his": "fis"} if prefix else {k: k for k in stem}
    slots = {names[k]: v for k, v in stem.items()}
    return slots | {k.capitalize(): v.capitalize() for k, v in slots.items()}


def pick_kind(rng: random.Random, female: bool) -> tuple[str, str]:
    """A kind and its home; three heroes in four are animals."""
    people = words.GIRLS if female else words.BOYS
    source = words.ANIMALS if rng.random() < 0.75 else people
    return rng.choice(sorted(source.items()))


def characters(rng: random.Random) -> Slots:
    """Hero and friend, with different names and kinds."""
    female, friend_female = rng.random() < 0.5, rng.random() < 0.5
    name = rng.choice(words.SHE_NAMES if female else words.HE_NAMES)
    friend = rng.choice([n for n in (words.SHE_NAMES if friend_female else words.HE_NAMES) if n != name])
    kind, home = pick_kind(rng, female)
    friend_kind = kind
    while friend_kind == kind:
        friend_kind = pick_kind(rng, friend_female)[0]
    others = rng.sample([k for k in sorted(words.ANIMALS) if k not in (kind, friend_kind)], 2)
    slots = {"H": name, "kind": kind, "home": home, "F": friend, "fkind": friend_kind,
             "fkind2": others[0], "fkind3": others[1]}
    return slots | pronouns(female, "") | pronouns(friend_female, "f")


def props(rng: random.Random) -> Slots:
    """Place and things of one story."""
    in_place, to_place, place = rng.choice(words.PLACES)
    adj, fadj = rng.sample(sorted(set(words.ADJECTIVES)), 2)
    if rng.random() < 0.3:
        adj = "little"
    spots = rng.sample(words.HIDING_SPOTS, 3)
    skill, skill_done = rng.choice(words.SKILLS)
    trouble, tool = rng.choice(words.TROUBLES)
    return {
        "in_place": in_place, "to_place": to_place, "place": place, "adj": adj, "fadj": fadj,
        "color": rng.choice(words.COLORS), "thing": rng.choice(words.THINGS), "food": rng.choice(words.FOODS),
        "dish": rng.choice(words.DISHES), "missing": rng.choice(words.MISSING), "plant": rng.choice(words.PLANTS),
        "skill": skill, "skill_done": skill_done, "love": rng.choice(words.LOVES),
        "spot1": spots[0], "spot2": spots[1], "spot3": spots[2], "trouble": trouble, "tool": tool,
        "treasure": rng.choice(words.TREASURES), "instrument": rng.choice(words.INSTRUMENTS),
        "wish": rng.choice(words.WISHES), "Everyone": rng.choice(("Everyone", "All the others")),
        "trait": rng.choice(openings.TRAITS) if rng.random() < 0.7 else "", "lived": rng.choice(openings.LIVED),
    }


class Story:
    """One story under construction: its slots, its random generator, and whether the friend was introduced."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slots = characters(rng) | props(rng)
        self.friend_known = False

    def reference(self, name: str, kind: str, known: bool) -> str:
        """A character by name, or by kind once the reader knows it."""
        return name if not known or self.rng.random() < BY_NAME_SHARE else f"the {kind}"

    def value(self, slot: str) -> str:
        """The text for a slot."""
        if slot == "h":
            return self.reference(self.slots["H"], self.slots["kind"], True)
        if slot == "f":
            return self.reference(self.slots["F"], self.slots["fkind"], self.friend_known)
        if slot == "friend":
            return self.introduce_friend()
        self.friend_known = self.friend_known or slot == "fkind"
        return self.slots[slot]

    def introduce_friend(self) -> str:
        """"a kind bear named Max" the first time, the name or "Max the bear" later."""
        if self.friend_known:
            return self.rng.choice((self.slots["F"], f"{self.slots['F']} the {self.slots['fkind']}"))
        self.friend_known = True
        named = "a~ {fadj} {fkind} named {F}"
        return self.rng.choice((named, named, "{F} the {fkind}", "{his} friend {F} the {fkind}"))

    def expand(self, template: str) -> str:
        """Replaces every `[a|b]` and `{slot}`."""
        while CHOICE.search(template) or SLOT.search(template):
            template = CHOICE.sub(lambda m: self.rng.choice(m.group(1).split("|")), template, count=1)
            template = SLOT.sub(lambda m: self.value(m.group(1)), template, count=1)
        return polish(template)


def polish(text: str) -> str:
    """Makes spaces single, a~ into a or an, and the first letter of a sentence a capital."""
    text = re.sub(" +", " ", text).strip()
    text = ARTICLE.sub(lambda m: f"{m.group(1)}{'n' if m.group(2) in 'aeiou' else ''} {m.group(2)}", text)
    return SENTENCE_START.sub(lambda m: m.group(1) + m.group(2).upper(), text)


def choose_plot(rng: random.Random) -> tuple[plots.Plot, str, str]:
    """A plot, an opening that fits its hour and weather, and the words between them."""
    plot = rng.choice(plots.DAY_PLOTS + plots.NIGHT_OR_WEATHER)
    if plot in plots.NIGHT_OR_WEATHER or rng.random() < 0.5:
        when = rng.choice(("One day, ", "One day, ", "One [sunny|cool|quiet|bright|windy] [morning|day|afternoon], "))
        return plot, rng.choice(openings.TIMELESS), when
    return plot, rng.choice(openings.DAYTIME), rng.choice(("Soon, ", "Then ", "After a while, ", ""))


def choose_lines(rng: random.Random, plot: plots.Plot) -> list[str]:
    """One sentence per beat. A story ends with the last beat, a general ending, or both."""
    lines = [rng.choice(beat) for beat in plot] + [rng.choice(openings.ENDINGS)]
    close = rng.random()
    if close < 0.45:
        return lines[:-1]
    return lines[:-2] + lines[-1:] if close < 0.85 else lines


def write_story(rng: random.Random) -> str:
    """Returns one story of about seven to ten sentences."""
    story = Story(rng)
    plot, opening, story.slots["when"] = choose_plot(rng)
    text = " ".join(story.expand(line) for line in (opening, *choose_lines(rng, plot)) if line)
    if rng.random() < REQUEST_SHARE:
        return story.expand(rng.choice(openings.REQUESTS)) + " " + text
    return text


def write_corpus(seed: int, count: int) -> list[str]:
    """Returns `count` stories."""
    rng = random.Random(seed)
    return [write_story(rng) for _ in range(count)]


if __name__ == "__main__":
    for line in write_corpus(seed=1, count=8):
        print(line, end="\n\n")
