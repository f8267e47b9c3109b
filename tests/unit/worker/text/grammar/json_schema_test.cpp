#include "worker/text/grammar/json_schema.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/earley.hpp"
#include "worker/text/grammar/integer_range.hpp"

namespace leasehold::testing {
namespace {

void check(const std::string& schema, const std::vector<std::string>& accepted,
           const std::vector<std::string>& refused) {
  INFO(schema);
  check_texts(parse_json_schema(schema), accepted, refused);
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
  check(R"({"type":"object","additionalProperties":false})", {"{}", "{ }"}, {R"({"a":1})"});
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
  check(R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"});
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
  check(R"({"enum":["a",1,null,{"b":[]}]})", {"\"a\"", "1", "null", R"({"b":[]})"}, {"2", "\"b\""});
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
  check(R"({"minimum":-3,"maximum":12})", {"-3", "0", "12"}, {"-4", "13", "1.0"});
  check(R"({"type":"integer","exclusiveMinimum":7,"maximum":1e300})", {"8", "9007199254740991"},
        {"7", "9007199254740992"});
}

TEST_CASE("json schema: an unsupported keyword is a BadRequest with keyword and path") {
  const std::pair<const char*, const char*> kInvalidSchemas[] = {
      {"{", "JSON schema"},
      {"3", "#: expected a schema"},
      {"false", "#: 'false' allows no text"},
      {R"({"type":"object","properties":{"a":{"type":"string","contentEncoding":"x"}}})",
       "#/properties/a: 'contentEncoding' is not supported"},
      {R"({"type":"number","minimum":1})", "#: 'minimum' is not supported"},
      {R"({"type":"object","patternProperties":{}})", "'patternProperties'"},
      {R"({"type":"array","uniqueItems":true})", "'uniqueItems'"},
      {R"({"not":{}})", "#: 'not' is not supported"},
      {R"({"anyOf":[{"type":"null"}],"type":"string"})", "#: 'type' is not supported"},
      {R"({"anyOf":[]})", "#/anyOf: expected a list of schemas"},
      {R"({"type":"text"})", "#/type: expected object"},
      {R"({"type":[]})", "#/type: expected the name"},
      {R"({"$ref":"#/$defs/none"})", "#/$ref: there is no '#/$defs/none'"},
      {R"({"$ref":"http://x/y"})", "#/$ref: expected"},
      {R"({"$ref":"#/~2"})", "#/$ref: there is no"},
      {R"({"$ref":"#"})", "left recursive"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       "cannot be completed"},
      {R"({"enum":[]})", "#/enum: expected a list"},
      {R"({"type":"null","enum":[1]})", "#/enum: no value has the type"},
      {R"({"type":"string","minLength":-1})", "#/minLength: expected a number"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "minLength is above maxLength"},
      {R"({"type":"string","minLength":3,"pattern":"a"})", "use only one of"},
      {R"({"type":"string","format":"email"})", "#/format: 'email' is not supported"},
      {R"s({"type":"string","pattern":"a(?=b)"})s", "#/pattern: of groups"},
      {R"({"type":"string","pattern":"(a)\\1"})", "#/pattern: '\\1' is not supported"},
      {R"({"type":"string","pattern":"^a|b$"})", "put alternatives"},
      {R"({"type":"string","pattern":"a$b"})", "'$' is not supported here"},
      {R"({"type":"string","pattern":"["})", "not closed"},
      {R"({"type":"integer","minimum":2,"maximum":1})", "no integer is within"},
      {R"({"type":"array","items":false,"minItems":1})", "minItems is above"},
      {R"({"type":"object","required":["x"],"additionalProperties":false})",
       "'false' allows no text"},
      {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "#/allOf/0: only schemas of objects"},
      {R"({"allOf":[{"properties":{"a":true}},{"properties":{"a":true}}]})",
       "'a' is described twice"},
  };
  for (const auto& [schema, what] : kInvalidSchemas) {
    CAPTURE(schema);
    check_bad_request(parse_json_schema(schema), what);
  }
}

TEST_CASE("json schema: a deeply nested schema is refused") {
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += R"({"items":)";
  deep += "true" + std::string(3000, '}');
  REQUIRE_THAT(parse_json_schema(deep).error().detail, Catch::Contains("nested deeper"));
}

}  // namespace leasehold::testing
