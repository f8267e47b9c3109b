#include "worker/text/grammar/schema/schema_proofs.hpp"

#include <algorithm>
#include <cmath>

namespace leasehold {
namespace {

constexpr int kMaxProofDepth = 3;
constexpr std::uint64_t kMaxProvedElements = 4;

/// True if no number of the type is within both bounds.
bool are_apart(const NumericBound& low, const NumericBound& high, SchemaType type) {
  const auto lowest = low.value->get<double>();
  const double above = lowest - high.value->get<double>();
  if (above != 0) return above > 0;
  return low.exclusive || high.exclusive || (type == FractionType && lowest == std::floor(lowest));
}

}  // namespace

Result<Cases> SchemaProofs::without(const OrderedJson& base, const SchemaCase& one,
                                    const Cases& other) {
  SchemaCase keywords;
  keywords.parts.push_back(&base);
  const SchemaCase with_base = TRY(cases_of_both(context_, base, {keywords}, {one})).front();
  Cases left{one};
  for (const SchemaCase& theirs : other) {
    const SchemaCase shared = TRY(cases_of_both(context_, base, {with_base}, {theirs})).front();
    if (TRY(is_empty(shared))) continue;
    // Generated objects have no members that the schema does not name; see ObjectFacts.
    const ObjectFacts mine = TRY(facts_.object(with_base));
    if (mine.is_closed) {
      SchemaCase closed = shared;
      closed.allowed.emplace(mine.names.begin(), mine.names.end());
      if (TRY(is_empty(closed))) {
        for (SchemaCase& part : left) part.allowed = closed.allowed;
        continue;
      }
    }
    // A value that lacks a name that the other branch requires does not satisfy that branch.
    const unsigned types = TRY(facts_.types(with_base));
    Cases next;
    for (const std::string& name : TRY(facts_.object(theirs)).required) {
      if (types != ObjectType || mine.required.contains(name)) continue;
      for (SchemaCase part : left) {
        part.forbidden.insert(name);
        next.push_back(std::move(part));
      }
    }
    if (next.empty()) return Cases{};
    left = std::move(next);
  }
  return left;
}

Result<bool> SchemaProofs::are_empty(const Schemas& schemas) {
  if (schemas.empty() || facts_.proof_depth() >= kMaxProofDepth) return false;
  const SchemaFacts::Proof proof(facts_);
  for (const SchemaCase& one : TRY(cases_.of(schemas)))
    if (!TRY(is_empty(one))) return false;
  return true;
}

Result<bool> SchemaProofs::is_empty(const SchemaCase& one) {
  const SchemaFacts::Proof proof(facts_);
  const unsigned types = TRY(facts_.types(one));
  if (types == 0) return true;
  if (const auto values = TRY(values_.literals(one))) return values->empty();
  for (unsigned type = NullType; type <= FractionType; type *= 2)
    if ((types & type) != 0 && !TRY(has_no(one, static_cast<SchemaType>(type)))) return false;
  return true;
}

Result<bool> SchemaProofs::has_no(const SchemaCase& one, SchemaType type) {
  switch (type) {
    case ObjectType:
      return has_no_object(one);
    case ArrayType:
      return has_no_array(one);
    case StringType:
      return has_no_text(one);
    case IntegerType:
    case FractionType:
      return has_no_number(one, type);
    case NullType:
    case BooleanType:
    case AnyType:
      break;
  }
  return false;
}

Result<bool> SchemaProofs::has_no_object(const SchemaCase& one) {
  const ObjectFacts facts = TRY(facts_.object(one));
  const CountRange count = TRY(facts_.counts(one, "minProperties", "maxProperties"));
  if (count.is_empty() || (count.max && *count.max < facts.required.size())) return true;
  for (const std::string& name : facts.required) {
    if (one.excludes(name)) return true;
    const Schemas schemas = TRY(facts_.member(one, name));
    if (TRY(are_empty(schemas))) return true;
  }
  return false;
}

Result<bool> SchemaProofs::has_no_array(const SchemaCase& one) {
  const CountRange count = TRY(facts_.counts(one, "minItems", "maxItems"));
  if (count.is_empty()) return true;
  for (std::size_t i = 0; i < std::min(count.min, kMaxProvedElements); ++i) {
    const Schemas schemas = TRY(facts_.element(one, i));
    if (TRY(are_empty(schemas))) return true;
  }
  return false;
}

Result<bool> SchemaProofs::has_no_text(const SchemaCase& one) {
  if (TRY(facts_.counts(one, "minLength", "maxLength")).is_empty()) return true;
  const bool has_pattern = std::ranges::any_of(
      one.parts, [](const OrderedJson* part) { return part->contains("pattern"); });
  if (!has_pattern) return false;
  const auto set = TRY(facts_.texts(one));
  return set && set->is_empty();
}

Result<bool> SchemaProofs::has_no_number(const SchemaCase& one, SchemaType type) {
  const NumberFacts facts = TRY(facts_.numbers(one));
  return std::ranges::any_of(facts.low, [&](const NumericBound& low) {
    return std::ranges::any_of(
        facts.high, [&](const NumericBound& high) { return are_apart(low, high, type); });
  });
}

}  // namespace leasehold
