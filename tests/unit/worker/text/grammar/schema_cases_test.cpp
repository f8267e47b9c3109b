// Alternatives of schemas without combinators, and proofs that a value fits none of them.
#include <catch2/catch.hpp>

#include "worker/text/grammar/schema/schema_proofs.hpp"

namespace leasehold::testing {
namespace {

/// A document with the parts that read it.
struct Document {
  explicit Document(std::string_view text)
      : context(SchemaContext::parse(text, true, work).value()), facts(context), cases(facts) {}

  Cases of_whole() { return cases.of({&context.root()}).value(); }
  SchemaCase only_case() {
    Cases all = of_whole();
    REQUIRE(all.size() == 1);
    return all.front();
  }

  WorkBudget work;
  SchemaContext context;
  SchemaFacts facts;
  SchemaCases cases;
};

}  // namespace

TEST_CASE("schema cases: combinators become alternatives") {
  const std::pair<const char*, std::size_t> kSchemas[] = {
      {"true", 1},
      {"false", 0},
      {R"({"title":"t"})", 1},
      {R"({"anyOf":[{"minimum":1},{"maximum":2},true]})", 3},
      {R"({"anyOf":[{"minimum":1},{"maximum":2}],"allOf":[{"anyOf":[{"type":"null"},true]}]})", 4},
      {R"({"anyOf":[{"minimum":1},false]})", 1},
      {R"({"anyOf":[{"minimum":1}],"allOf":[false]})", 0},
      {R"({"oneOf":[{"type":"null"},{"type":"array"}]})", 2},
      // The proof reads the whole schema again, for the elements.
      {R"({"oneOf":[{"type":"array","minItems":1,"items":{"$ref":"#","type":"null"}},
                    {"type":"array","minItems":1,"items":{"type":"string"}}]})",
       2},
      {R"({"dependentRequired":{"a":["b"],"c":["d"]}})", 4},
      {R"({"dependentSchemas":{"a":{"anyOf":[{"minimum":1},{"maximum":2}]}}})", 3},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"minimum":1},{"maximum":2}]}}})", 2},
  };
  for (const auto& [schema, n_cases] : kSchemas) {
    CAPTURE(schema);
    Document document(schema);
    CHECK(document.of_whole().size() == n_cases);
  }
}

TEST_CASE("schema cases: a dependency is one case without the member and one with what it needs") {
  Document document(R"({"dependentRequired":{"a":["b"]}})");
  const Cases all = document.of_whole();
  REQUIRE(all.size() == 2);
  CHECK(all[0].forbidden == std::set<std::string>{"a"});
  CHECK(all[0].required.empty());
  CHECK(all[1].required == std::set<std::string>{"a", "b"});
  CHECK(all[1].excludes("a") == false);
}

TEST_CASE("schema cases: a schema may refer to itself only for another value") {
  Document document(
      R"({"items":{"$ref":"#"},"properties":{"a":{"allOf":[{"$ref":"#/properties/a"}]}}})");
  const OrderedJson& root = document.context.root();
  CHECK(document.cases.of({&root})->size() == 1);
  CHECK(document.cases.of({&root.at("items")})->size() == 1);
  const auto cyclic = document.cases.of({&root.at("properties").at("a")});
  REQUIRE_FALSE(cyclic);
  CHECK_THAT(cyclic.error().detail, Catch::Contains("refers to itself"));
  CHECK(document.cases.of({&root})->size() == 1);  // a refusal leaves nothing open
}

TEST_CASE("schema facts: while proving, nothing is refused or listed") {
  Document document(R"s({"type":"string","not":{},"format":"regex","pattern":"(?=a)"})s");
  const SchemaCase one = document.only_case();
  CHECK_FALSE(document.facts.types(one));
  {
    const SchemaFacts::Proof proof(document.facts);
    CHECK(document.facts.types(one) == StringType);
    CHECK(document.facts.proof_depth() == 1);
  }
  CHECK_FALSE(document.facts.is_proving());
  CHECK_FALSE(document.facts.types(one));
  CHECK(document.context.unchecked() == UncheckedParts{});
}

TEST_CASE("schema values: listed values must satisfy the keywords beside them") {
  const std::tuple<const char*, std::vector<const char*>> kSchemas[] = {
      {R"({"enum":[1,2,3],"minimum":2,"exclusiveMaximum":3})", {"2"}},
      {R"({"enum":[2,3,4,6],"multipleOf":2,"exclusiveMinimum":2})", {"4", "6"}},
      {R"({"enum":["a","bb","cb"],"minLength":2,"pattern":"^b"})", {"\"bb\""}},
      {R"({"enum":[[1],[1,2],["x",1]],"minItems":2,"prefixItems":[{"type":"integer"}]})",
       {"[1,2]"}},
      {R"({"enum":[{"a":1},{"b":1},{"a":1,"b":2}],"required":["a"],"maxProperties":1})",
       {R"({"a":1})"}},
      {R"({"enum":[{"a":1},{"a":"x"}],"properties":{"a":{"type":"string"}}})", {R"({"a":"x"})"}},
      {R"({"const":1,"enum":[1,2]})", {"1"}},
      {R"({"const":1,"enum":[2]})", {}},
      {R"({"enum":[1.0,1.5],"type":"integer"})", {"1.0"}},
  };
  for (const auto& [schema, expected] : kSchemas) {
    CAPTURE(schema);
    Document document(schema);
    SchemaValues values(document.facts, document.cases);
    const auto found = values.literals(document.only_case());
    REQUIRE(found);
    std::vector<std::string> texts;
    for (const OrderedJson* value : found->value()) texts.push_back(value->dump());
    CHECK(texts == std::vector<std::string>(expected.begin(), expected.end()));
  }
}

TEST_CASE("schema proofs: only schemas without a value are empty") {
  const std::pair<const char*, bool> kSchemas[] = {
      {R"({"type":"string","allOf":[{"type":"null"}]})", true},
      {R"({"type":"string","minLength":2,"maxLength":1})", true},
      {R"({"type":"string","pattern":"^a$","allOf":[{"pattern":"^b$"}]})", true},
      {R"({"type":"string","pattern":"a","allOf":[{"pattern":"b"}]})", false},
      {R"({"type":"integer","minimum":2,"maximum":1})", true},
      {R"({"type":"number","minimum":2,"exclusiveMaximum":2})", true},
      {R"({"type":"number","minimum":2,"maximum":2})", false},
      {R"({"type":"array","minItems":2,"maxItems":1})", true},
      {R"({"type":"array","items":false,"minItems":1})", true},
      {R"({"type":"array","items":false})", false},
      {R"({"type":"object","required":["a"],"properties":{"a":false}})", true},
      {R"({"type":"object","required":["a"],"maxProperties":0})", true},
      {R"({"type":"object","properties":{"a":false}})", false},
      {R"({"enum":[1],"type":"null"})", true},
      {R"({"not":{}})", false},
  };
  for (const auto& [schema, is_empty] : kSchemas) {
    CAPTURE(schema);
    Document document(schema);
    SchemaProofs proofs(document.facts, document.cases);
    CHECK(proofs.is_empty(document.only_case()) == is_empty);
    CHECK_FALSE(document.facts.is_proving());
  }
}

}  // namespace leasehold::testing
