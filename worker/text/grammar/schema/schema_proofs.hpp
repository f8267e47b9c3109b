/// Proves that no value satisfies certain schemas, so that branches of oneOf exclude each other.
/// Internal to worker/text/grammar.
#pragma once

#include "worker/text/grammar/schema/schema_values.hpp"

namespace leasehold {

/// A search nests at most three levels, so some proofs are not found. Lifetime: facts and cases
/// outlive it. Errors: those of SchemaFacts.
class SchemaProofs {
 public:
  SchemaProofs(SchemaFacts& facts, SchemaCases& cases)
      : facts_(facts), cases_(cases), values_(facts, cases), context_(facts.context()) {}

  /// True only if it is certain that no value satisfies the case.
  Result<bool> is_empty(const SchemaCase& one);
  /// What is left of `one` without the values that satisfy a case of `other`; empty if that is not
  /// known. `base` holds the keywords that apply to both.
  Result<Cases> without(const OrderedJson& base, const SchemaCase& one, const Cases& other);

 private:
  Result<bool> are_empty(const Schemas& schemas);
  Result<bool> has_no(const SchemaCase& one, SchemaType type);
  Result<bool> has_no_object(const SchemaCase& one);
  Result<bool> has_no_array(const SchemaCase& one);
  Result<bool> has_no_text(const SchemaCase& one);
  Result<bool> has_no_number(const SchemaCase& one, SchemaType type);

  SchemaFacts& facts_;
  SchemaCases& cases_;
  SchemaValues values_;
  SchemaContext& context_;
};

}  // namespace leasehold
