#include <catch2/catch.hpp>

#include "common/cli/print_error.hpp"
#include "tests/unit/worker/text/grammar/compiled_schema.hpp"

namespace leasehold::testing {

TEST_CASE("json schema: a lenient schema lists what is not checked") {
  const auto schema = compiled(
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer","not":{"const":3}}})",
      SchemaMode::Lenient);
  REQUIRE(schema);
  CHECK(schema->unchecked == UncheckedParts{{"#: 'uniqueItems'", "#/items: 'not'"}, 0});
  CHECK(accepts(*schema, "[3,3]"));
  CHECK_FALSE(accepts(*schema, "[true]"));
  const auto branches =
      compiled(R"({"oneOf":[{"minimum":1},{"maximum":2}],"type":"integer"})", SchemaMode::Lenient);
  REQUIRE(branches);
  CHECK(branches->unchecked.listed == Listed{"#: 'oneOf' as 'anyOf'"});
  const auto strict = compiled(R"({"type":"integer"})");
  REQUIRE(strict);
  CHECK(strict->unchecked == UncheckedParts{});
}

TEST_CASE("json schema: a lenient schema ignores patterns that are not supported") {
  const auto schema = compiled(
      R"s({"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)","maxLength":2},
          "b":{"enum":["x","yy"],"pattern":"a$b","minLength":2}},
          "patternProperties":{"^(?=n)":{"type":"null"},"^m":{"type":"null"}},
          "additionalProperties":false})s",
      SchemaMode::Lenient);
  REQUIRE(schema);
  CHECK(schema->unchecked.listed == Listed{"#/patternProperties: pattern \"^(?=n)\"",
                                           "#/properties/a/pattern: pattern \"^(?!x)\"",
                                           "#/properties/b/pattern: pattern \"a$b\""});
  CHECK(accepts(*schema, R"({"a":"xy","b":"yy","m":null})"));
  CHECK_FALSE(accepts(*schema, R"({"a":"xyz"})"));
  CHECK_FALSE(accepts(*schema, R"({"b":"x"})"));
  CHECK_FALSE(accepts(*schema, R"({"n":null})"));
  CHECK_FALSE(accepts(*schema, R"({"m":1})"));
}

TEST_CASE("json schema: a pattern that no dialect accepts is refused, lenient or not") {
  const std::string bad = GENERATE("(a", "a)", "[a", "a\\\\");
  const std::string schema = R"({"type":"string","pattern":")" + bad + "\"}";
  CAPTURE(schema);
  for (const SchemaMode mode : {SchemaMode::Strict, SchemaMode::Lenient})
    check_bad_request(compiled(schema, mode), "of the pattern");
}

TEST_CASE("json schema: a refusal that a lenient schema does not get names --lenient") {
  for (const char* schema :
       {R"({"not":{}})", R"({"$ref":"http://x/y"})", R"({"type":"string","pattern":"(a)\\1"})",
        R"({"oneOf":[{"minimum":1},{"maximum":2}],"type":"integer"})"}) {
    CAPTURE(schema);
    check_bad_request(compiled(schema), "--lenient");
  }
}

TEST_CASE("json schema: a lenient schema ignores a reference into another document") {
  const auto schema = compiled(
      R"({"type":"object","properties":{"a":{"$ref":"core.json#/$defs/id","type":"integer"},
          "b":{"$ref":"http://json-schema.org/draft-07/schema#"}}})",
      SchemaMode::Lenient);
  REQUIRE(schema);
  CHECK(schema->unchecked.listed ==
        Listed{"#/properties/a: '$ref' \"core.json#/$defs/id\"",
               "#/properties/b: '$ref' \"http://json-schema.org/draft-07/schema#\""});
  CHECK(accepts(*schema, R"({"a":3,"b":{"c":[]}})"));
  CHECK_FALSE(accepts(*schema, R"({"a":"x"})"));
  check_bad_request(compiled(R"({"$ref":"#/$defs/none"})", SchemaMode::Lenient), "there is no");
}

TEST_CASE("json schema: the list of what is not checked is short and printable") {
  std::string parts = R"("\u001b\n\u007f":{"format":"\u001b]0;"})";
  parts += R"(,")" + std::string(5000, 'k') + R"(":{"items":{"format":")" + std::string(5000, 'f') +
           R"("}})";
  for (int i = 0; i < 100; ++i)
    parts += ",\"p" + std::to_string(i) + R"(":{"type":"null","not":{}})";
  const auto schema = compiled(R"({"properties":{)" + parts + "}}", SchemaMode::Lenient);
  REQUIRE(schema);
  const UncheckedParts& unchecked = schema->unchecked;
  REQUIRE(unchecked.listed.size() == UncheckedParts::kMaxListed);
  CHECK(unchecked.omitted == 102 - UncheckedParts::kMaxListed);
  CHECK(unchecked.listed[0] == R"(#/properties/   : 'format' "?]0;")");
  for (const std::string& one : unchecked.listed) {
    CHECK(one.size() <= 256);
    CHECK(printable(one) == one);
  }
}

}  // namespace leasehold::testing
