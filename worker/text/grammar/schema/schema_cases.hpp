/// Turns schemas with anyOf, allOf, oneOf, dependencies and references into *cases*: alternatives
/// that are schemas without combinators. Internal to worker/text/grammar.
#pragma once

#include "worker/text/grammar/schema/schema_facts.hpp"

namespace leasehold {

using Cases = std::vector<SchemaCase>;

/// The cases of the values that satisfy one case of `a` and one of `b`. `at`: where an error is
/// reported.
Result<Cases> cases_of_both(SchemaContext& context, const OrderedJson& at, const Cases& a,
                            const Cases& b);

/// A schema that refers to itself for the same value is refused, so a search ends. Lifetime: the
/// facts outlive it. Threads: one. Errors: those of SchemaFacts.
class SchemaCases {
 public:
  explicit SchemaCases(SchemaFacts& facts) : facts_(facts), context_(facts.context()) {}

  /// Returns the cases of values that satisfy all of `schemas`. With oneOf, the cases may leave out
  /// some of these values. Each call is a search for another value, so a proof may call it during a
  /// search for schemas that refer to the same ones.
  Result<Cases> of(const Schemas& schemas);

 private:
  Result<Cases> narrowed(const OrderedJson& at, const OrderedJson& schema, Cases all);
  Result<Cases> cases_of(const OrderedJson& schema);
  Result<Cases> keywords(const OrderedJson& schema);
  Result<Cases> any_of(const OrderedJson& list);
  Result<Cases> one_of(const OrderedJson& schema, const OrderedJson& list);
  Result<void> allow_overlap(const OrderedJson& schema, const OrderedJson& list, std::size_t i,
                             std::size_t j);
  Result<Cases> dependency(const std::string& name, const OrderedJson& needed);

  SchemaFacts& facts_;
  SchemaContext& context_;
  Schemas open_;  ///< Schemas whose cases are being found.
};

}  // namespace leasehold
