/// Analyzes schemas: which of them apply together to a value, and what they require of it. Internal
/// to worker/text/grammar.
///
/// anyOf, oneOf, dependencies and references turn a set of schemas into *cases*: alternatives that
/// are schemas without combinators. The analyzer reads a case as facts about each type of value.
#pragma once

#include "worker/text/grammar/schema/schema_context.hpp"
#include "worker/text/grammar/schema/schema_pattern.hpp"
#include "worker/text/grammar/text_automaton.hpp"

namespace leasehold {

using Schemas = std::vector<const OrderedJson*>;

/// Schemas that apply together, and the requirements that their combinators add.
struct SchemaCase {
  Schemas parts;  ///< Objects with keywords about the value itself; each once.
  std::set<std::string> required;
  std::set<std::string> forbidden;
  std::optional<std::set<std::string>> only;  ///< If set, no other members are allowed.
  bool operator==(const SchemaCase&) const = default;
  auto operator<=>(const SchemaCase&) const = default;
};
using Cases = std::vector<SchemaCase>;

enum SchemaType : unsigned {
  NullType = 1,
  BooleanType = 2,
  ObjectType = 4,
  ArrayType = 8,
  StringType = 16,
  IntegerType = 32,
  FractionType = 64,  ///< Numbers that are not integers.
  AnyType = 127
};

struct NumericBound {
  const OrderedJson* value;  ///< A number.
  bool exclusive;
};

struct NumberFacts {
  std::vector<NumericBound> low;  ///< All of them apply.
  std::vector<NumericBound> high;
  std::vector<std::uint64_t> multiples_of;
};

struct ObjectFacts {
  std::vector<std::string>
      names;  ///< Declared names: of `properties` in order, then of `required`.
  std::set<std::string> required;
  Schemas property_names;
  bool is_closed = false;  ///< Allows only declared names and those that match a pattern.
};

/// Lifetime: the context outlives it. Threads: one. Errors of all functions: BadRequest naming a
/// keyword that is malformed or cannot be enforced and its path, or the part that took too much
/// work.
class SchemaAnalyzer {
 public:
  explicit SchemaAnalyzer(SchemaContext& context) : context_(context) {}

  /// Returns the cases of values that satisfy all of `schemas`. With oneOf, they may leave out some
  /// such values.
  Result<Cases> cases(const Schemas& schemas);

  /// The allowed types, as bits of SchemaType. Adds formats that are not regular to `unchecked`.
  Result<unsigned> types(const SchemaCase& one);
  /// The values of `enum` and `const` that satisfy the case; nothing if it has neither keyword.
  Result<std::optional<Schemas>> literals(const SchemaCase& one);
  Result<NumberFacts> numbers(const SchemaCase& one);
  Result<CountRange> counts(const SchemaCase& one, const char* min, const char* max);
  /// The texts that match all patterns and formats of the case; nothing: any text.
  Result<std::optional<TextAutomaton>> texts_of_patterns(const SchemaCase& one);
  /// The same, also within the lengths of the case.
  Result<std::optional<TextAutomaton>> texts(const SchemaCase& one);
  Result<std::optional<TextAutomaton>> texts(const Schemas& schemas);
  Result<ObjectFacts> object(const SchemaCase& one);
  /// The schemas that apply to the member with this name.
  Result<Schemas> member(const SchemaCase& one, const std::string& name);
  Result<std::size_t> tuple_size(const SchemaCase& one);
  Result<Schemas> element(const SchemaCase& one, std::size_t index);
  /// Parses the pattern `text`, which is at `at` in the document. Returns nothing if lenient mode
  /// ignores the pattern, because it is not supported.
  Result<std::optional<Pattern>> parsed(const OrderedJson& at, const std::string& text);
  /// The automaton of the pattern; null in the same case.
  Result<const TextAutomaton*> pattern(const OrderedJson& at, const std::string& text);

  SchemaContext& context() { return context_; }

 private:
  // schema_cases.cpp
  Result<Cases> one(const OrderedJson& schema);
  Result<Cases> keywords(const OrderedJson& schema);
  Result<Cases> any_of(const OrderedJson& list);
  Result<Cases> dependency(const std::string& name, const OrderedJson& needed);
  Result<Cases> product(const OrderedJson& at, const Cases& a, const Cases& b);
  // schema_exclusive.cpp
  Result<Cases> one_of(const OrderedJson& schema, const OrderedJson& list);
  Result<Cases> without(const OrderedJson& base, const SchemaCase& one, const Cases& other);
  Result<bool> is_empty(const SchemaCase& one);
  Result<bool> are_empty(const Schemas& schemas);
  Result<bool> has_no(const SchemaCase& one, SchemaType type);
  Result<bool> has_no_object(const SchemaCase& one);
  // schema_values.cpp
  Result<bool> admits(const Schemas& schemas, const OrderedJson& value);
  Result<bool> admits(const SchemaCase& one, const OrderedJson& value);
  Result<bool> fits(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_object(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_array(const SchemaCase& one, const OrderedJson& value);
  Result<bool> admits_text(const SchemaCase& one, const std::string& text);
  Result<bool> admits_number(const SchemaCase& one, const OrderedJson& value);
  // schema_facts.cpp
  Result<void> check_enforceable(const OrderedJson& part, unsigned types);
  Result<void> check_format(const OrderedJson& part);
  Result<void> add_texts(const OrderedJson& part, const TextAutomaton& more,
                         std::optional<TextAutomaton>& all);
  Result<void> add_bound(const OrderedJson& part, bool upper, NumberFacts& facts);

  SchemaContext& context_;
  Schemas open_;     ///< Schemas whose cases are being found.
  int proving_ = 0;  ///< Depth of a search for a value that two branches share; see is_empty.
  std::map<std::string, TextAutomaton> patterns_;
};

}  // namespace leasehold
