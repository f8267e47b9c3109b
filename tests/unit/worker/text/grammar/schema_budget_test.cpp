/// Compiling a schema is bounded by counted steps.
#include <catch2/catch.hpp>

#include "tests/unit/worker/text/grammar/compiled_schema.hpp"
#include "tests/unit/worker/text/grammar/earley.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold::testing {

TEST_CASE("json schema: too much work names the part of the schema") {
  std::string all;
  for (int i = 0; i < 9; ++i) {
    all += i > 0 ? "," : "";
    all += R"({"anyOf":[{"minimum":1},{"maximum":2},{"multipleOf":3}]})";
  }
  check_bad_request(compiled(R"({"properties":{"deep":{"allOf":[)" + all + "]}}}"),
                    "#/properties/deep/allOf: its alternatives have more than 512");
  check_bad_request(compiled(R"({"properties":{"long":{"type":"string","allOf":[{"pattern":"b"}],
                            "pattern":"(a|b)*a(a|b){18}"}}})"),
                    "#/properties/long/pattern: compiling takes more than");
  check_bad_request(compiled(R"({"properties":{"counted":{"type":"string","allOf":[{"pattern":"b"}],
                            "pattern":"((a{0,99}){0,99}){0,99}"}}})"),
                    "#/properties/counted/pattern: compiling takes more than");
}

TEST_CASE("json schema: work that copies or repeats is counted, and the first refusal ends it") {
  const auto repeated = [](int n, const auto& make) {
    std::string all;
    for (int i = 0; i < n; ++i) all += (i > 0 ? "," : "") + make(std::to_string(i));
    return all;
  };
  const auto empty = [](const std::string&) { return std::string("{}"); };
  const auto name = [](const std::string& n) { return "\"n" + n + "\""; };
  const auto member = [](const std::string& n) { return "\"n" + n + "\":{}"; };
  const std::string kHostile[] = {
      // A pattern of 30 000 states, copied for every two branches.
      R"({"type":"string","pattern":"^a{30000}$","oneOf":[)" + repeated(60, empty) + "]}",
      // A list of 2 500 names, copied for every part.
      R"({"dependentRequired":{"a":[)" + repeated(2500, name) + R"(]},"allOf":[)" +
          repeated(1000, empty) + "]}",
      // A rule for every member and every number of members before it.
      R"({"properties":{)" + repeated(2500, member) +
          R"(},"additionalProperties":true,"maxProperties":64})",
      // Two lists of values, each value compared with all others.
      R"({"enum":[)" + repeated(2000, name) + R"(],"allOf":[{"enum":[)" + repeated(2000, name) +
          "]}]}",
      // A class of 2 000 ranges, repeated.
      R"({"allOf":[{"pattern":"z"}],"pattern":"[)" + std::string(2000, 'z') + R"(]{0,60000}"})",
  };
  for (const std::string& schema : kHostile) {
    CAPTURE(schema.substr(0, 60));
    REQUIRE(schema.size() < SamplingParams::kMaxGrammarBytes);
    for (const SchemaMode mode : {SchemaMode::Strict, SchemaMode::Lenient}) {
      WorkBudget work;
      const auto grammar = compile_json_schema(schema, mode, work);
      const bool overlaps = mode == SchemaMode::Strict && schema.contains("oneOf");
      check_bad_request(grammar, overlaps ? "may both fit" : "compiling takes more than");
      CHECK(work.refusals == (overlaps ? 0 : 1));
      CHECK(work.spent <= WorkBudget::kMaxCompileSteps);
    }
  }
}

}  // namespace leasehold::testing
