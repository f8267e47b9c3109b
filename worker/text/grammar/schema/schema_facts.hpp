/// Reads what a set of schemas, without their combinators, requires of each type of value. Internal
/// to worker/text/grammar.
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
  std::optional<std::set<std::string>> allowed;  ///< If set, no other members are allowed.
  bool operator==(const SchemaCase&) const = default;
  auto operator<=>(const SchemaCase&) const = default;

  bool excludes(const std::string& name) const {
    return forbidden.contains(name) || (allowed && !allowed->contains(name));
  }
};

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
  /// Declared names: of `properties` in order, then of `required`.
  std::vector<std::string> names;
  std::set<std::string> required;
  Schemas property_names;
  bool is_closed = false;  ///< Allows only declared names and those that match a pattern.
};

/// Each pattern is compiled once. Lifetime: the context outlives it. Threads: one. Errors of all
/// functions: BadRequest naming a keyword that is malformed or cannot be enforced and its path, or
/// the part that took too much work.
class SchemaFacts {
 public:
  explicit SchemaFacts(SchemaContext& context) : context_(context) {}
  SchemaFacts(const SchemaFacts&) = delete;
  SchemaFacts& operator=(const SchemaFacts&) = delete;

  /// While a Proof exists, keywords that no grammar can enforce are ignored instead of refused, and
  /// formats are ignored instead of listed. This only admits more values, so a set of values that a
  /// proof finds empty is empty.
  class Proof {
   public:
    explicit Proof(SchemaFacts& facts) : facts_(facts) { ++facts_.n_proofs_; }
    ~Proof() { --facts_.n_proofs_; }
    Proof(const Proof&) = delete;
    Proof& operator=(const Proof&) = delete;

   private:
    SchemaFacts& facts_;
  };
  int proof_depth() const { return n_proofs_; }
  bool is_proving() const { return n_proofs_ > 0; }

  /// Where an error about the case is reported.
  const OrderedJson& place(const SchemaCase& one) const;
  /// The allowed types, as bits of SchemaType. Adds formats that are not regular to `unchecked`.
  Result<unsigned> types(const SchemaCase& one);
  Result<NumberFacts> numbers(const SchemaCase& one);
  Result<CountRange> counts(const SchemaCase& one, const char* min, const char* max);
  /// The same, limited to what a grammar can repeat: a larger maximum is lowered. Errors: also
  /// BadRequest for a minimum above the maximum, or above what a grammar can repeat.
  Result<Repetition> repetition(const SchemaCase& one, const char* min, const char* max);
  /// The texts that match all patterns and formats of the case; nothing: any text.
  Result<std::optional<TextAutomaton>> texts_of_patterns(const SchemaCase& one);
  /// The same, also within the lengths of the case.
  Result<std::optional<TextAutomaton>> texts(const SchemaCase& one);
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
  Result<void> check_enforceable(const OrderedJson& part, unsigned types);
  Result<void> check_format(const OrderedJson& part);
  Result<void> add_texts(const OrderedJson& part, const TextAutomaton& more,
                         std::optional<TextAutomaton>& all);
  Result<void> add_bound(const OrderedJson& part, bool upper, NumberFacts& facts);

  SchemaContext& context_;
  int n_proofs_ = 0;
  std::map<std::string, TextAutomaton> patterns_;
};

}  // namespace leasehold
