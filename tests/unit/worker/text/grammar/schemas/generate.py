"""Schemas as people write them, by the cause for which an engine may refuse them, and values that may
or may not be valid under them. All words are our own; the seed determines everything."""
import random

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper", "knoll",
         "lagoon", "meadow", "nectar", "orchid", "pebble", "quarry", "raven", "summit", "thicket")
# How often a schema has the cause, in parts of all; a schema may have several.
MIX = {"plain": 8, "unknown keyword": 23, "old spelling": 10, "literal beside": 7, "members beside": 9,
       "number bounds": 9, "multiple of": 3, "item bounds": 6, "text bounds": 6, "pattern and length": 5, "pattern members": 7,
       "dependent": 4, "member count": 4, "names": 2, "format": 10, "one of": 4, "combined types": 3,
       "many members": 2, "layout": 3, "cannot be promised": 7}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self):
        return self.random.choice(WORDS)

    def words(self, n):
        return self.random.sample(WORDS, n)

    # Each maker returns a schema and candidates, which are values that may be valid.
    def leaf(self):
        r = self.random
        return r.choice([
            lambda: ({"type": "string"}, [self.word(), "", 7]),
            lambda: ({"type": "integer"}, [r.randint(-99, 99), 0.5, "x"]),
            lambda: ({"type": "number"}, [r.randint(-99, 99) / 4, 3, "x"]),
            lambda: ({"type": "boolean"}, [True, False, None]),
            lambda: ({"type": ["string", "null"]}, [None, self.word(), 1]),
            lambda: ({"enum": self.words(3)}, [*self.words(3), "other"]),
            lambda: ({"type": "array", "items": {"type": "string"}}, [[], self.words(2), [1], "x"]),
        ])()

    def record(self, parts, **more):
        """An object of named parts; some are required."""
        names = self.words(len(parts))
        required = [n for n in names if self.random.random() < 0.5]
        schema = {"type": "object", "properties": dict(zip(names, (p[0] for p in parts)))}
        if required:
            schema["required"] = required
        schema.update(more)
        candidates = []
        for _ in range(10):
            one = {n: self.random.choice(p[1]) for n, p in zip(names, parts)
                   if n in required or self.random.random() < 0.6}
            if one and self.random.random() < 0.15:
                one.pop(self.random.choice(list(one)))
            candidates.append(one)
        return schema, [*candidates, [], None]

    def plain(self):
        return self.record([self.leaf() for _ in range(3)])

    def unknown_keyword(self):
        r = self.random
        schema, values = self.leaf()
        schema.update(r.choice([{"x-order": 3}, {"example": "amber"}, {"readonly": True}, {"_format": "wide"},
                                {"self": {"vendor": "grove", "version": "1-0-0"}}, {"units": "m"},
                                {"enumNames": ["A", "B"]}, {"javaType": "grove.Heron"}, {"widget": {"type": "text"}},
                                {"contentEncoding": "base64"}, {"options": {"hidden": False}}]))
        return schema, values

    def old_spelling(self):
        r = self.random
        leaf, values = self.leaf()
        pick = r.randrange(6)
        if pick == 0:
            return {"$ref": "#/definitions/part", "definitions": {"part": leaf}}, values
        if pick == 1:
            return {"$defs": {"part": {"$anchor": "here", **leaf}}, "$ref": "#here"}, values
        if pick == 2:
            return {"id": "#top", "allOf": [{"$ref": "#kept"}], "definitions": {"a": {"id": "#kept", **leaf}}}, values
        if pick == 3:
            schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
                      "items": [leaf, {"type": "boolean"}], "additionalItems": r.choice([False, {"type": "null"}])}
            return schema, [[r.choice(values), True], [r.choice(values)], [r.choice(values), False, None],
                            [values[0], 1], []]
        if pick == 4:
            return {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 3,
                    "exclusiveMinimum": True, "maximum": 9.5}, [3, 3.5, 4, 9.5, 9.6, 10, 2]
        a, b = self.words(2)
        return ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                 "properties": {a: {"type": "integer"}, b: leaf}, "dependencies": {a: [b]}},
                [{a: 1, b: values[0]}, {a: 1}, {b: values[0]}, {}])

    def literal_beside(self):
        r = self.random
        return r.choice([
            lambda: ({"type": "string", "enum": self.words(3), "minLength": 1, "maxLength": 6, "description": "d"},
                     [*self.words(6), ""]),
            lambda: ({"const": "amber", "type": "string", "pattern": "^a"}, ["amber", "birch"]),
            lambda: ({"enum": [1, 2, 3, 40, None, "x"], "type": ["integer", "null"], "minimum": 2},
                     [1, 2, 3, 40, None, "x", 41]),
            lambda: ({"enum": [{"a": 1, "b": [True]}, [], "x"], "type": ["object", "array"], "required": ["a"]},
                     [{"a": 1, "b": [True]}, [], "x", {"a": 1}]),
        ])()

    def members_beside(self):
        a, b, c = self.words(3)
        first, values = self.leaf()
        second, others = self.leaf()
        objects = [{a: values[0], b: others[0]}, {a: values[0]}, {b: others[0]}, {}, {a: values[0], c: 1},
                   {a: values[-1], b: others[0]}, {a: values[0], b: others[0], c: True}, 3]
        base = {"type": "object", "properties": {a: first, b: second}}
        tail = {"properties": {c: {"type": ["integer", "boolean"]}}}
        return self.random.choice([
            lambda: {**base, "anyOf": [{"required": [a]}, {"required": [b]}]},
            lambda: {**base, "allOf": [tail, {"required": [c]}]},
            lambda: {**base, "$ref": "#/$defs/more", "$defs": {"more": tail}},
            lambda: {"allOf": [{"$ref": "#/$defs/base"}, tail], "$defs": {"base": base}, "required": [a]},
            lambda: {**base, "properties": {**base["properties"], **tail["properties"]},
                     "oneOf": [{"required": [a]}, {"required": [c]}]},
            lambda: {**base, "allOf": [{"properties": {a: {"type": ["string", "integer", "null"]}}}]},
        ])(), objects

    def number_bounds(self):
        r = self.random
        low = r.choice([0, -5, 1.5, 0.01, -0.25, 100, 12.75])
        high = low + r.choice([0, 1, 0.5, 90, 1000.125])
        kind = r.choice(["number", "number", "integer"])
        schema = {"type": kind, r.choice(["minimum", "exclusiveMinimum"]): low}
        if r.random() < 0.7:
            schema[r.choice(["maximum", "exclusiveMaximum"])] = high
        middle = (low + high) / 2
        return schema, [low, high, middle, round(middle), low - 1, high + 1, low + 0.001, high - 0.001, 0, 1e3, "x"]

    def multiple_of(self):
        r = self.random
        step = r.choice([2, 3, 5, 10, 15, 100])
        schema = {"type": "integer", "multipleOf": step}
        if r.random() < 0.6:
            schema["minimum"] = r.choice([0, 1, -20])
        if r.random() < 0.4:
            schema["maximum"] = r.choice([60, 1000, 99999])
        return schema, [0, step, -step, step * 3, step + 1, step * 1000, 61, 7, -step * 9, 1.5]

    def item_bounds(self):
        r = self.random
        leaf, values = self.leaf()
        low = r.choice([0, 1, 2, 3])
        high = r.choice([low, low + 2, 40, 1000, 100000])
        schema = {"type": "array", "items": leaf, "minItems": low, "maxItems": high}
        if r.random() < 0.3:
            schema["allOf"] = [{"maxItems": 4}, {"minItems": 1}]
        return schema, [[values[0]] * n for n in (0, 1, 2, 3, 4, 5, 41)]

    def text_bounds(self):
        return self.random.choice([
            lambda: ({"type": "string", "minLength": 2, "maxLength": 30000}, ["", "a", "ab", "x" * 400]),
            lambda: ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}, ["", "amber", "thicket", "A"]),
            lambda: ({"type": "string", "pattern": "^[A-Z]{2}-\\d+$", "minLength": 5}, ["AB-1", "AB-12", "ab-12"]),
            lambda: ({"type": "string", "allOf": [{"minLength": 3}, {"maxLength": 4}, {"minLength": 2}]},
                     ["ab", "abc", "abcd", "abcde"]),
            lambda: ({"type": "string", "pattern": "b", "allOf": [{"pattern": "^a"}]}, ["amber", "birch", "cab", "ab"]),
            lambda: ({"type": "string", "pattern": "^(x|y)$|^none$"}, ["x", "none", "xnone", "z"]),
            lambda: ({"type": "string", "format": "date", "minLength": 1, "maxLength": 10}, ["2024-02-29", ""]),
        ])()

    def pattern_and_length(self):
        return self.random.choice([
            lambda: ({"type": "string", "pattern": "^(https?|s3)://([^/]+)/(.*?([^/]+))$", "maxLength": 2048},
                     ["https://grove.example/amber/birch", "s3://heron/knoll", "https://grove.example/", "s3:/x/y"]),
            lambda: ({"type": "string", "pattern": "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.])+[a-z]{2,63}$",
                      "minLength": 4, "maxLength": 1024}, ["grove.example", "www.grove-2.example", "a.b", "-.example"]),
            lambda: ({"type": "string", "pattern": "^[A-Z][a-z]*( [a-z]+)*[.]?$", "minLength": 7, "maxLength": 900},
                     ["Amber birch cedar.", "Amber", "Amber b", "amber birch", "Amber  birch"]),
        ])()

    def pattern_members(self):
        a = self.word()
        leaf, values = self.leaf()
        good, bad = values[0], values[-1]
        objects = [{}, {"x-amber": good}, {"x-amber": bad}, {a: good}, {a: 1, "x-b": good}, {"y": good}, {"n12": 4},
                   {"n12": "x"}, {"n1": 1, "n2": 2}]
        return self.random.choice([
            lambda: {"type": "object", "patternProperties": {"^x-": leaf}, "additionalProperties": False},
            lambda: {"type": "object", "patternProperties": {"^n[0-9]+$": {"type": "integer"}, "^x-": leaf}},
            lambda: {"type": "object", "properties": {a: {"type": "integer"}}, "patternProperties": {"^x-": leaf}},
            lambda: {"type": "object", "patternProperties": {"": leaf}},
            lambda: {"type": "object", "patternProperties": {"^[a-z]+$": leaf}, "properties": {a: {"minLength": 1}},
                     "additionalProperties": {"type": "integer"}},
        ])(), objects

    def dependent(self):
        a, b, c = self.words(3)
        members = {n: {"type": "integer"} for n in (a, b, c)}
        objects = [{}, {a: 1}, {a: 1, b: 2}, {b: 2}, {a: 1, b: 2, c: 3}, {b: 1, c: 2}, {c: 1}]
        return self.random.choice([
            lambda: {"type": "object", "properties": members, "dependentRequired": {a: [b], b: [c]}},
            lambda: {"properties": members, "dependentRequired": {a: [b, c]}, "type": "object"},
            lambda: {"type": "object", "properties": members,
                     "dependentSchemas": {a: {"properties": {b: {"minimum": 2}}, "required": [b]}}},
        ])(), objects

    def member_count(self):
        a, b, c = self.words(3)
        members = {n: {"type": "integer"} for n in (a, b, c)}
        objects = [{}, {a: 1}, {a: 1, b: 2}, {a: 1, b: 2, c: 3}, {"other": 1}, {"o": 1, "p": 2}, {c: 5}]
        return self.random.choice([
            lambda: {"type": "object", "properties": members, "minProperties": 2},
            lambda: {"type": "object", "properties": members, "minProperties": 1, "maxProperties": 2},
            lambda: {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
            lambda: {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
        ])(), objects

    def names(self):
        objects = [{}, {"ab": 1}, {"abc": 2}, {"A": 1}, {"amber": 3, "b": 1}, {"ab": "x"}]
        return self.random.choice([
            lambda: {"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}},
            lambda: {"type": "object", "propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "integer"}},
            lambda: {"type": "object", "propertyNames": {"enum": ["ab", "amber", "b"]}},
        ])(), objects

    def format(self):
        name, good, bad = self.random.choice([
            ("email", "amber@grove.example", "amber"), ("uri", "https://grove.example/a?b#c", "no uri"),
            ("ipv4", "10.1.2.3", "10.1.2"), ("ipv6", "fe80::1", "fe80"), ("hostname", "grove.example", "-a-"),
            ("duration", "P3DT4H", "3 days"), ("date-time", "2024-05-06T07:08:09Z", "2024"),
            ("regex", "^a+$", "("), ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
            ("json-pointer", "/a/b", "a"), ("uri-reference", "../a", "a b"), ("iri", "https://grove.example/", ""),
            ("int32", "3", ""), ("color", "#aabbcc", ""), ("time", "07:08:09Z", "7")])
        return {"type": "string", "format": name}, [good, 3]

    def one_of(self):
        a, b, kind = self.words(3)
        return self.random.choice([
            lambda: ({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                     ["x", ["x"], [1], 2]),
            lambda: ({"oneOf": [{"properties": {kind: {"const": n}, n: {"type": "integer"}}, "required": [kind, n]}
                                for n in (a, b)], "type": "object"},
                     [{kind: a, a: 1}, {kind: b, b: 2}, {kind: a, b: 2}, {}]),
            lambda: ({"oneOf": [{"type": "null"}, {"enum": [a, b]}, {"type": "integer", "minimum": 0}]},
                     [None, a, b, 0, -1, "other"]),
            lambda: ({"oneOf": [{"type": "integer", "maximum": 4}, {"type": "integer", "minimum": 3}]}, [1, 3, 4, 9]),
            lambda: ({"type": "object", "properties": {a: {"type": "integer"}, b: {"type": "string"}},
                      "oneOf": [{"required": [a]}, {"required": [b]}]},
                     [{a: 1}, {b: "x"}, {a: 1, b: "x"}, {}]),
        ])()

    def combined_types(self):
        return self.random.choice([
            lambda: ({"type": ["string", "integer"], "minLength": 2, "maximum": 10}, ["a", "ab", 3, 11, None]),
            lambda: ({"anyOf": [{"type": "string"}, {"type": "number"}], "maxLength": 3, "minimum": 0},
                     ["ab", "abcd", 1, -1, 0.5]),
            lambda: ({"type": ["array", "string"], "items": {"type": "integer"}, "minItems": 1, "pattern": "^a"},
                     [[1], [], "amber", "birch"]),
            lambda: ({"anyOf": [{"minimum": 5}, {"type": "string"}], "type": ["integer", "string"]},
                     [5, 4, "x", None]),
        ])()

    def many_members(self):
        names = [f"{a}_{b}" for a in WORDS for b in WORDS[:self.random.choice([2, 5])]]
        schema = {"type": "object", "properties": {n: {"type": "string", "maxLength": 500, "description": n}
                                                   for n in names}, "required": names[:2]}
        return schema, [{n: "x" for n in names[:k]} for k in (0, 1, 2, 5, len(names))]

    def layout(self):
        schema, values = self.record([self.leaf(), self.record([self.leaf(), self.leaf()]), self.leaf()])
        return schema, values

    def cannot_be_promised(self):
        leaf, values = self.leaf()
        return self.random.choice([
            lambda: ({**leaf, "not": {"enum": ["x"]}}, values),
            lambda: ({"type": "array", "items": leaf, "uniqueItems": True}, [[values[0]], [values[0]] * 2]),
            lambda: ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["a", "ab", 1]),
            lambda: ({"type": "array", "contains": leaf}, [[], [values[0]]]),
            lambda: ({"type": "object", "properties": {"a": leaf}, "unevaluatedProperties": False}, [{}, {"b": 1}]),
            lambda: ({"type": "number", "multipleOf": 0.01}, [0.5, 0.333]),
        ])()


def cases(seed, n):
    """Yields (causes, schema, values). References stay in their own part of the document."""
    maker = Maker(seed)
    names, weights = zip(*MIX.items())
    for _ in range(n):
        cause = maker.random.choices(names, weights)[0]
        part = getattr(maker, cause.replace(" ", "_"))()
        if maker.random.random() < 0.4 and "$ref" not in str(part[0]) and "$schema" not in part[0]:
            part = maker.record([part, maker.leaf()], additionalProperties=maker.random.choice([False, True]))
        yield cause, part[0], part[1]
