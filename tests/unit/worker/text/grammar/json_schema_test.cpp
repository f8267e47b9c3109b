#include <catch2/catch.hpp>
#include <tuple>

#include "tests/unit/worker/text/grammar/compiled_schema.hpp"
#include "tests/unit/worker/text/grammar/earley.hpp"
#include "worker/text/grammar/grammar_matcher.hpp"
#include "worker/text/grammar/schema/number_range.hpp"

namespace leasehold::testing {
namespace {

void check(const std::string& schema, const std::vector<std::string>& accepted,
           const std::vector<std::string>& refused) {
  INFO(schema);
  check_texts(compiled(schema), accepted, refused);
}

}  // namespace

TEST_CASE("json schema: objects have only allowed members") {
  check(
      R"({"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"null"}},"required":["a"]})",
      {R"({"b":true,"a":null})", R"({"a":null})", "{\n  \"a\": null\n}"},
      {"{}", R"({"b":true})", R"({"a":null,"b":true})", R"({"a":null,"c":1})", R"({"a":null,})"});
  check(R"({"type":"object","properties":{"a":true,"b":true,"c":true},"required":["b"]})",
        {R"({"b":1})", R"({"a":[],"b":{},"c":"x"})", R"({"b":1,"c":2})"},
        {R"({"a":1,"c":2})", R"({,"b":1})"});
  check(R"({"type":"object","properties":{"a":{"const":1}},"additionalProperties":{"const":2}})",
        {"{}", R"({"a":1})", R"({"a":1,"b":2,"ab":2,"":2})", R"({"z":2})"},
        {R"({"a":2})", R"({"b":2,"a":2})", R"({"b":1})"});
  check(R"({"type":"object","required":["k"],"additionalProperties":{"const":2}})",
        {R"({"k":2})", R"({"k":2,"l":2})"}, {"{}", R"({"l":2})", R"({"k":2,"k":2})"});
  check(R"({"type":"object"})", {"{}", R"({"x":{"y":[1]}})"}, {"[]", "{x:1}"});
  check(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})", "{ }", "{\n}"});
  check(R"({"properties":{"a\"b":{"type":"null"}},"required":["a\"b"]})", {R"({"a\"b":null})"},
        {"{}"});
}

TEST_CASE("json schema: arrays have only allowed elements and lengths") {
  check(R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})",
        {"[true]", "[true, false,true]"}, {"[]", "[true,true,true,true]", "[null]", "[true,]"});
  check(R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false})",
        {"[]", "[1]", "[1,2]"}, {"[2]", "[1,2,3]", "[1,2,2]"});
  check(
      R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":1,"maxItems":4})",
      {"[1]", "[1,2]", "[1,2,3]", "[1,2,3,3]"}, {"[]", "[1,3]", "[1,2,3,3,3]"});
  check(R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"minItems":3})",
        {"[1,2,\"x\"]", "[1,2,3,4]"}, {"[1,2]"});
  check(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]", "[ ]", "[\n]"});
  check(R"({"type":"array","prefixItems":[{"const":1},{"const":2}],"maxItems":1})", {"[]", "[1]"},
        {"[1,2]"});
}

TEST_CASE("json schema: strings obey length, pattern and format") {
  check(R"({"type":"string","minLength":1,"maxLength":2})",
        {R"("a")", R"("éé")", R"("\n🦙")", R"("\ud83e\udd99a")"},
        {R"("")", R"("abc")", R"("\ud83e")"});
  check(R"({"type":"string","pattern":"^[a-c]{2}\\d+$"})", {R"("ab1")", R"("cc007")"},
        {R"("ab")", R"("xab1")", R"("ab1x")"});
  check(R"({"pattern":"^(?:a|b\\.)*?(x|\\x41\\u0042)$"})", {R"("x")", R"("ab.AB")"},
        {R"("bAB")", R"("")"});
  check(R"({"type":"string","pattern":"b"})", {R"("b")", R"("aba")", R"("é\"b")"}, {R"("aca")"});
  check(R"({"type":"string","pattern":"^[^a\\s]\\\\.$"})", {R"("b\\x")", R"("\"\\\"")"},
        {R"("a\\x")", R"("b\\\n")", R"(" \\x")"});
  check(R"({"type":"string","format":"date"})",
        {R"("2024-02-29")", R"("2026-11-30")", R"("2000-02-29")"},
        {R"("2026-02-29")", R"("1900-02-29")", R"("2026-11-31")", R"("2026-13-01")"});
  check(R"({"type":"string","format":"time"})", {R"("23:59:59Z")", R"("00:00:00.5+02:00")"},
        {R"("24:00:00Z")", R"("10:00:00")"});
  check(R"({"type":"string","format":"date-time"})", {R"("2026-11-20T18:00:00Z")"},
        {R"("2026-11-20 18:00:00Z")"});
  check(R"({"type":"string","format":"uuid"})", {R"("123e4567-e89b-12d3-A456-426614174000")"},
        {R"("123e4567e89b12d3a456426614174000")"});
  check(R"({"type":"string"})", {R"("")", R"("a\u00e9\\")"}, {"\"\n\"", R"("\x")", R"("\uDC00")"});
}

TEST_CASE("json schema: literals, types and combinations") {
  check(R"({"enum":["a",1,null,{"b":[]}]})", {"\"a\"", "1", "null", R"({"b":[]})", R"({"b": []})"},
        {"2", "\"b\"", R"({"b" :[]})"});
  check(R"({"type":"integer","enum":["a",1,2.0,2.5]})", {"1", "2.0"}, {"\"a\"", "2.5"});
  check(R"({"const":"x","description":"d","title":"t","default":3})", {"\"x\""}, {"\"y\""});
  check(R"({"type":["string","null"],"maxLength":1})", {"null", "\"a\""}, {"\"ab\"", "1"});
  check(R"({"anyOf":[{"type":"null"},{"const":3}]})", {"null", "3"}, {"4"});
  check(R"({"oneOf":[{"type":"boolean"},{"type":"array","items":{"$ref":"#"}}]})",
        {"true", "[[],false]"}, {"[1]"});
  check(
      R"({"allOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}}}]})",
      {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}", R"({"b":2})"});
  check(R"({"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"const":7}}})", {"7"}, {"8"});
  check(
      R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]}}})",
      {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]}]})"}, {"{}", R"({"v":1,"kids":[3]})"});
  check("true", {"1", "{}", "\"x\""}, {"", "tru"});
  check("{}", {"1", "[null]"}, {"nil"});
  check(R"({"type":"number"})", {"0", "-1.5", "1e9", "12.25E-3"},
        {"01", ".5", "1.", "1e400", "+1"});
}

TEST_CASE("json schema: unknown keywords are annotations") {
  check(R"({"type":"null","x-order":1,"self":{"type":"string"},"readonly":true,"then":false})",
        {"null"}, {"1"});
}

TEST_CASE("json schema: the spellings of older drafts") {
  check(R"({"definitions":{"a":{"type":"null"}},"$ref":"#/definitions/a"})", {"null"}, {"1"});
  check(R"({"$ref":"#here","$defs":{"a":{"$anchor":"here","type":"null"}}})", {"null"}, {"1"});
  check(R"({"id":"http://x/y","$ref":"http://x/y#/definitions/a","definitions":{"a":{"const":1}}})",
        {"1"}, {"2"});
  check(R"({"$ref":"#/%24defs/a","$defs":{"a":{"const":1}}})", {"1"}, {"2"});
  check(R"({"items":[{"const":1},{"const":2}],"additionalItems":{"const":3},"type":"array"})",
        {"[]", "[1]", "[1,2,3,3]"}, {"[2]", "[1,2,2]"});
  check(R"({"minimum":3,"exclusiveMinimum":true,"type":"integer"})", {"4"}, {"3"});
  check(R"({"properties":{"a":true,"b":true},"dependencies":{"a":["b"]},"type":"object"})",
        {"{}", R"({"a":1,"b":2})", R"({"b":2})"}, {R"({"a":1})"});
}

TEST_CASE("json schema: keywords beside combinations hold together with them") {
  check(R"({"type":"string","enum":["a","bc",3],"maxLength":1})", {"\"a\""}, {"\"bc\"", "3"});
  check(R"({"properties":{"a":{"const":1}},"anyOf":[{"required":["a"]},{"required":["b"]}],
            "type":"object"})",
        {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"}, {"{}", R"({"a":2})"});
  check(R"({"$ref":"#/$defs/x","minimum":2,"$defs":{"x":{"type":"integer","maximum":3}}})",
        {"2", "3"}, {"1", "4"});
  check(R"({"allOf":[{"properties":{"a":{"minimum":2}}},{"properties":{"a":{"type":"integer"}}}],
            "type":"object","required":["a"]})",
        {R"({"a":2})"}, {R"({"a":1})", R"({"a":2.5})"});
  check(R"({"type":["string","integer"],"pattern":"^a+$","minLength":2,"minimum":5})",
        {"\"aa\"", "5"}, {"\"a\"", "4", "\"b\""});
}

TEST_CASE("json schema: a value fits one branch of oneOf") {
  check(R"({"type":"object","properties":{"a":true,"b":true},
            "oneOf":[{"required":["a"]},{"required":["b"]}]})",
        {R"({"a":1})", R"({"b":1})"}, {"{}", R"({"a":1,"b":1})"});
  check(R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},
                     {"type":"object","properties":{"k":{"const":2}},"required":["k"]}]})",
        {R"({"k":1})", R"({"k":2})"}, {R"({"k":3})"});
}

TEST_CASE("json schema: bounds of numbers") {
  check(R"({"type":"number","minimum":-0.5,"exclusiveMaximum":12.25})",
        {"-0.5", "-0.49", "0", "3.14", "12.2", "12.2499", "12"},
        {"-0.51", "-1", "12.25", "12.3", "13", "1e1", "-0"});
  check(R"({"type":"number","exclusiveMinimum":0})", {"0.001", "1", "99999999.5"},
        {"0", "0.0", "0.00", "-1"});
  check(R"({"type":"number","exclusiveMaximum":5})", {"4.99", "-7"},
        {"5", "4.9999999999999999", "5.0"});
  check(R"({"type":"integer","multipleOf":15,"minimum":-30})", {"-30", "0", "45", "999990"},
        {"-45", "7", "44", "045"});
  check(R"({"type":"integer","multipleOf":2,"allOf":[{"multipleOf":3}],"maximum":10000000})",
        {"6", "-12", "9999996"}, {"2", "3", "10000002"});
}

TEST_CASE("json schema: many items and long texts") {
  check(R"({"type":"array","items":{"const":1},"minItems":2,"maxItems":100000})",
        {"[1,1]", "[1,1,1]"}, {"[1]"});
  check(R"({"type":"array","items":{"const":1},"maxItems":5,"allOf":[{"maxItems":2}]})", {"[1,1]"},
        {"[1,1,1]"});
  const auto text = [](std::size_t n) { return '"' + std::string(n, 'x') + '"'; };
  check(R"({"type":"string","minLength":600,"maxLength":900})", {text(600), text(800), text(900)},
        {text(599), text(901)});
}

TEST_CASE("json schema: names of members by pattern, count and dependency") {
  check(R"({"type":"object","patternProperties":{"^x-":{"const":1}},"additionalProperties":false})",
        {"{}", R"({"x-a":1,"x-":1})"}, {R"({"x-a":2})", R"({"y":1})"});
  check(
      R"({"type":"object","properties":{"xa":{"type":"integer"}},"patternProperties":{"x":{"minimum":3}},
            "additionalProperties":{"const":0}})",
      {R"({"xa":3})", R"({"xb":4,"y":0})"}, {R"({"xa":2})", R"({"y":4})"});
  check(
      R"({"type":"object","propertyNames":{"pattern":"^[ab]$"},"additionalProperties":{"const":1}})",
      {"{}", R"({"a":1})"}, {R"({"c":1})", R"({"ab":1})"});
  check(R"({"type":"object","properties":{"a":true,"b":true,"c":true},"minProperties":2})",
        {R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"}, {"{}", R"({"b":1})"});
  check(
      R"({"type":"object","additionalProperties":{"const":1},"minProperties":1,"maxProperties":2})",
      {R"({"q":1})", R"({"q":1,"r":1})"}, {"{}", R"({"q":1,"r":1,"s":1})"});
  check(
      R"({"type":"object","properties":{"a":true,"b":true,"c":true},"dependentRequired":{"a":["c"]},
            "dependentSchemas":{"b":{"properties":{"c":{"const":1}}}}})",
      {"{}", R"({"a":1,"c":2})", R"({"b":1,"c":1})", R"({"b":1})"},
      {R"({"a":1})", R"({"b":1,"c":2})"});
}

TEST_CASE("json schema: formats that are regular are rules, others are named") {
  const std::tuple<const char*, std::vector<std::string>, std::vector<std::string>> kFormats[] = {
      {"email", {"a.b@c.org"}, {"a", "a@", ".a@b"}},
      {"ipv4", {"0.0.0.0", "255.1.20.9"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
      {"ipv6",
       {"::", "::1", "fe80::1:2", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::"},
       {":", "1", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::"}},
      {"hostname", {"a", "a-b.c9"}, {"-a", "a-", "a..b"}},
      {"uri", {"http://a.b/c?d#e", "urn:a:b", "mailto:a@b"}, {"/a", "a", "http://a b"}},
      {"uri-reference", {"", "/a", "../a", "#x", "http://a"}, {" ", "\\"}},
      {"duration", {"P1D", "PT5M", "P1Y2M3DT4H", "P2W"}, {"P", "PT", "1D", "P1DT"}},
      {"json-pointer", {"", "/a~0b/c"}, {"a", "/~2"}},
  };
  for (const auto& [name, accepted, refused] : kFormats) {
    const auto quoted = [](std::vector<std::string> texts) {
      for (std::string& text : texts) text = '"' + text + '"';
      return texts;
    };
    check(std::string(R"({"type":"string","format":")") + name + "\"}", quoted(accepted),
          quoted(refused));
  }
  for (const char* beside : {"", R"(,"pattern":"^a","minLength":1)", R"(,"pattern":"^a")"}) {
    const auto other = compiled(R"({"properties":{"a":{"type":"string","format":"regex")" +
                                std::string(beside) + "}}}");
    REQUIRE(other);
    CHECK(other->unchecked.listed == Listed{R"(#/properties/a: 'format' "regex")"});
  }
}

TEST_CASE("json schema: a pattern within the bounds of the length keeps its structure") {
  check(R"({"type":"string","pattern":"^[a-z]{1,3}(-[0-9])?$","minLength":1,"maxLength":5})",
        {R"("a")", R"("abc-1")"}, {R"("")", R"("abcd")", R"("abc-12")"});
  check(R"({"type":"string","pattern":"^[a-z]*$","maxLength":2})", {R"("")", R"("ab")"},
        {R"("abc")"});
  check(R"({"type":"string","pattern":"^(a|bcd)$","minLength":2})", {R"("bcd")"}, {R"("a")"});
  check(R"({"type":"string","pattern":"^x{2}$","minLength":2,"maxLength":2})", {R"("xx")"},
        {R"("x")"});
  check_bad_request(compiled(R"({"type":"string","pattern":"^x{2}$","minLength":3})"),
                    "cannot be completed");
  // Far below the limit of symbols: the automaton has a state for each of 2 x 512 lengths.
  const auto name =
      compiled(R"({"type":"string","pattern":"^[a-z][a-z0-9]{0,511}$","maxLength":512})");
  REQUIRE(name);
  CHECK(name->symbols.size() < 1500);
}

TEST_CASE("json schema: escapes of patterns follow ECMA-262") {
  check(R"({"type":"string","pattern":"^\\_\\uD83D\\uDE00$"})", {"\"_\xF0\x9F\x98\x80\""},
        {R"("_")"});
  check(R"({"type":"string","pattern":"^[\\uD800\\uDC00-\\uDBFF\\uDFFF]$"})",
        {"\"\xF0\x9F\x98\x80\""}, {R"("a")"});
  check_bad_request(compiled(R"({"pattern":"\\uD800"})"), "half of a surrogate pair");
  check_bad_request(compiled(R"({"pattern":"\\uD800\\u0041"})"), "the second half of a pair");
}

TEST_CASE("json schema: equal parts are compiled once") {
  // Each of the two texts alone needs more than a tenth of the symbols that a grammar may have.
  const std::string kTexts[] = {
      R"({"type":"string","pattern":"^a[bc]*d[bc]*e[bc]*$","minLength":2,"maxLength":500})",
      R"({"type":"string","pattern":"^([a-z]{1,63}[.]){1,20}(x|[0-9]{1,500})$"})"};
  for (const std::string& text : kTexts) {
    const auto symbols_of = [&](int n) {
      std::string all;
      for (int i = 0; i < n; ++i)
        all += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":" + text;
      const auto schema = compiled(R"({"type":"object","properties":{)" + all + "}}");
      REQUIRE(schema);
      return schema->symbols.size();
    };
    CHECK(symbols_of(40) < symbols_of(1) + 40 * 40);
  }
}

TEST_CASE("json schema: integer bounds are exact") {
  const std::int64_t kBounds[] = {-1005, -1000, -999, -100, -99, -11, -10, -9,  -1,   0,   1,
                                  5,     9,     10,   11,   99,  100, 101, 999, 1000, 1234};
  for (const std::int64_t low : kBounds) {
    for (const std::int64_t high : kBounds) {
      if (low > high) continue;
      GrammarBuilder builder;
      const RuleId root = builder.declare("root");
      builder.define(root, {integer_range(builder, low, high)});
      const Grammar grammar = *builder.finish(root);
      for (std::int64_t near : kBounds) {
        for (std::int64_t value = near - 2; value <= near + 2; ++value) {
          CAPTURE(low, high, value);
          REQUIRE(accepts(grammar, std::to_string(value)) == (value >= low && value <= high));
        }
      }
      REQUIRE_FALSE(accepts(grammar, "-0"));
      REQUIRE_FALSE(accepts(grammar, "01"));
      REQUIRE_FALSE(accepts(grammar, ""));
    }
  }
}

TEST_CASE("json schema: integer bounds follow the standard") {
  check(R"({"type":"integer","minimum":1.5,"exclusiveMaximum":4})", {"2", "3"}, {"1", "4"});
  check(R"({"type":"integer","minimum":-3,"maximum":12})", {"-3", "0", "12"}, {"-4", "13", "1.0"});
  check(R"({"type":"integer","exclusiveMinimum":7,"maximum":1e300})", {"8", "9007199254740991"},
        {"7", "9007199254740992"});
}

TEST_CASE("json schema: an unsupported keyword is a BadRequest with keyword and path") {
  const std::pair<const char*, const char*> kInvalidSchemas[] = {
      {"{", "JSON schema"},
      {"3", "#: expected a schema"},
      {"false", "rule '#' cannot be completed"},
      {R"({"type":"array","uniqueItems":true})", "#: 'uniqueItems' is not supported"},
      {R"({"properties":{"a":{"not":{}}}})", "#/properties/a: 'not' is not supported"},
      {R"({"if":true})", "'if'"},
      {R"({"contains":{}})", "'contains'"},
      {R"({"type":"array","unevaluatedItems":false})", "'unevaluatedItems'"},
      {R"({"unevaluatedProperties":false})", "'unevaluatedProperties'"},
      {R"({"type":"number","multipleOf":0.01})", "'multipleOf'"},
      {R"({"$dynamicRef":"#a"})", "'$dynamicRef'"},
      {R"({"anyOf":[{"type":"null"}],"type":"string"})", "cannot be completed"},
      {R"({"anyOf":[]})", "#/anyOf: expected a list of schemas"},
      {R"({"type":"text"})", "#/type: expected object"},
      {R"({"type":[]})", "#/type: expected the name"},
      {R"({"$ref":"#/$defs/none"})", "#/$ref: there is no '#/$defs/none'"},
      {R"({"$ref":"http://x/y"})", "#/$ref: there is no 'http://x/y'"},
      {R"({"$ref":"#/~2"})", "#/$ref: there is no"},
      {R"({"$ref":3})", "#/$ref: expected"},
      {R"({"$ref":"#"})", "refers to itself"},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", "refers to itself"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       "cannot be completed"},
      {R"({"enum":[]})", "#/enum: expected a list"},
      {R"({"type":"null","enum":[1]})", "cannot be completed"},
      {R"({"type":"string","minLength":-1})", "#/minLength: expected a number"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "minLength is above maxLength"},
      {R"({"type":"string","minLength":70000})", "minLength is above 65536"},
      {R"({"type":"object","minProperties":2})", "minProperties needs more"},
      {R"({"type":"object","dependentRequired":{"a":[1]}})", "expected a list of names"},
      {R"s({"type":"string","pattern":"a(?=b)"})s", "#/pattern: of groups"},
      {R"({"type":"string","pattern":"(a)\\1"})", "#/pattern: '\\1' is not supported"},
      {R"({"type":"string","pattern":"a$b"})", "'$' at the end"},
      {R"({"type":"string","pattern":"["})", "not closed"},
      {R"({"type":"string","pattern":5})", "#/pattern: expected text"},
      {R"({"type":"string","format":null})", "#/format: expected text"},
      {R"({"type":"integer","minimum":2,"maximum":1})", "no integer is within"},
      {R"({"type":"number","minimum":2.5,"maximum":1})", "no number is within"},
      {R"({"type":"integer","multipleOf":1234567})", "too many multiples"},
      {R"({"type":"array","items":false,"minItems":1})", "cannot be completed"},
      {R"({"type":"object","required":["x"],"additionalProperties":false})", "cannot be completed"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "cannot be completed"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
       "#/oneOf: branches 0 and 1 may both fit"},
  };
  for (const auto& [schema, what] : kInvalidSchemas) {
    CAPTURE(schema);
    check_bad_request(compiled(schema), what);
  }
}

TEST_CASE("json schema: a deeply nested schema is refused") {
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += R"({"items":)";
  deep += "true" + std::string(3000, '}');
  REQUIRE_THAT(compiled(deep).error().detail, Catch::Contains("nested deeper"));
}

TEST_CASE("json schema: a long list of texts is followed with few parses") {
  std::string list = "7";
  for (int i = 0; i < 700; ++i) list += ",\"licence \\\"" + std::to_string(i) + "\"";
  const auto schema = compiled("{\"enum\":[" + list + "]}");
  REQUIRE(schema);
  GrammarMatcher matcher(std::make_shared<const Grammar>(*schema));
  const auto follows = [&](std::string_view text) {
    GrammarMatcher::State state = matcher.start();
    for (const char c : text) state = matcher.next(state, static_cast<std::uint8_t>(c));
    return matcher.may_end(state);
  };
  CHECK(follows(R"("licence \"699")"));
  CHECK(follows("7"));
  CHECK_FALSE(follows(R"("licence \"700")"));
  CHECK_FALSE(matcher.overflowed());
}

TEST_CASE("json schema: a nested schema with an $id has its own names and pointers") {
  const auto nested = [](const char* id, const char* value) {
    return std::string(R"({"$id":")") + id + R"(","$ref":"#/$defs/a","$defs":{"a":{"const":)" +
           value + R"(},"b":{"$anchor":"here","const":)" + value +
           R"(},"c":{"$id":"part","const":)" + value +
           R"(}},"unused":[{"$ref":"#here"},{"$ref":"part"}]})";
  };
  const std::string both = R"({"prefixItems":[)" + nested("one", "1") + "," + nested("two", "2") +
                           R"(],"type":"array","minItems":2,"items":false})";
  check(both, {"[1,2]"}, {"[1,1]", "[2,2]", "[2,1]"});
  const auto by_name = [](const char* id, const char* value, const char* ref) {
    return std::string(R"({"$id":")") + id + R"(","$ref":")" + ref +
           R"(","$defs":{"b":{"$anchor":"here","const":)" + value +
           R"(},"c":{"$id":"part","const":)" + value + "}}}";
  };
  for (const char* ref : {"#here", "part"}) {
    CAPTURE(ref);
    check(R"({"prefixItems":[)" + by_name("one", "1", ref) + "," + by_name("two", "2", ref) +
              R"(],"type":"array","minItems":2,"items":false})",
          {"[1,2]"}, {"[1,1]", "[2,2]", "[2,1]"});
  }
}

}  // namespace leasehold::testing
