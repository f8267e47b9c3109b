/// Finds the values and texts that schemas list, without those that other keywords exclude.
/// Internal to worker/text/grammar.
#pragma once

#include "worker/text/grammar/schema/schema_cases.hpp"

namespace leasehold {

/// Lifetime: facts and cases outlive it. Errors: those of SchemaFacts.
class SchemaValues {
 public:
  SchemaValues(SchemaFacts& facts, SchemaCases& cases)
      : facts_(facts), cases_(cases), context_(facts.context()) {}

  /// The values of `enum` and `const` that satisfy the case; nothing if it has neither keyword.
  Result<std::optional<Schemas>> literals(const SchemaCase& one);
  /// The texts that satisfy all schemas; nothing: any text.
  Result<std::optional<TextAutomaton>> texts(const Schemas& schemas);

 private:
  Result<bool> admits(const Schemas& schemas, const OrderedJson& value);
  Result<bool> admits(const SchemaCase& one, const OrderedJson& value);
  Result<bool> fits(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_object(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_array(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_text(const SchemaCase& one, const std::string& text);
  Result<bool> admits_number(const SchemaCase& one, const OrderedJson& value);

  SchemaFacts& facts_;
  SchemaCases& cases_;
  SchemaContext& context_;
};

}  // namespace leasehold
