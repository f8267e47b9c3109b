// Where the texts of a schema may have blanks.
#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/compiled_schema.hpp"
#include "tests/unit/worker/text/grammar/earley.hpp"

namespace leasehold::testing {

TEST_CASE("json schema: blanks stand where models write them and nowhere else") {
  const std::vector<std::string> laid_out = {
      R"({"a":[1,2],"b":{"c":3}})", R"({"a": [1, 2], "b": {"c": 3}})",
      "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n    \"c\": 3\n  }\n}",
      "{\r\n\t\"a\": [1, 2],\r\n\t\"b\": {\"c\": 3}\r\n}",
      "{\n\"a\": [1,\n 2],\n\"b\": {\"c\": 3}}"};
  const std::vector<std::string> wrong = {
      R"({"a" :[1,2],"b":{"c":3}})",
      R"({"a":  [1,2],"b":{"c":3}})",
      R"({"a":[1 ,2],"b":{"c":3}})",
      R"({"a":[1,2 ],"b":{"c":3}})",
      R"({"a":[ 1,2],"b":{"c":3}})",
      R"({"a":[1,2],"b":{"c":3 }})",
      R"({"a":[1,2] ,"b":{"c":3}})",
      R"({ "a":[1,2],"b":{"c":3}})",
      R"({"a":[1,  2],"b":{"c":3}})",
      R"( {"a":[1,2],"b":{"c":3}})",
      R"({"a":[1,2],"b":{"c":3}} )",
      "{\"a\":\n[1,2],\"b\":{\"c\":3}}",
      "{\"a\"\n:[1,2],\"b\":{\"c\":3}}",
      "{\"a\":[1\n,2],\"b\":{\"c\":3}}",
      "{\n\n\"a\":[1,2],\"b\":{\"c\":3}}",
      "{\"a\":[1, \n2],\"b\":{\"c\":3}}",
      "{\n" + std::string(33, ' ') + "\"a\":[1,2],\"b\":{\"c\":3}}"};
  for (const char* schema :
       {R"({"type":"object"})", R"({"const":{"a":[1,2],"b":{"c":3}}})", R"({"properties":
          {"a":{"items":{"type":"integer"}},"b":{"properties":{"c":true}}},"required":["a","b"]})",
        R"({"type":"object","patternProperties":{"^.$":{}}})",
        R"({"properties":{"a":{"prefixItems":[{"const":1}],"items":{"const":2}}},"required":["a"],
            "additionalProperties":true})"})
    check_texts(compiled(schema), laid_out, wrong);
}

}  // namespace leasehold::testing
