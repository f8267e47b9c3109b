// Implements oneOf, where exactly one branch fits. A branch is kept where it is proved that no
// other branch fits, too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "worker/text/grammar/schema/schema_analyzer.hpp"

namespace leasehold {
namespace {

constexpr int kMaxProofDepth = 3;

}  // namespace

/// While proving, oneOf is read as anyOf and keywords that are not checked are ignored: both only
/// add values, so an empty result is a proof.
Result<Cases> SchemaAnalyzer::one_of(const OrderedJson& schema, const OrderedJson& list) {
  if (!list.is_array() || list.empty()) return context_.error(list, "expected a list of schemas");
  if (proving_ > 0 || list.size() == 1) return any_of(list);
  std::vector<Cases> fitting;  // cases of each branch, as other branches see them
  for (const OrderedJson& branch : list) {
    ++proving_;
    Result<Cases> found = one(branch);
    --proving_;
    fitting.push_back(TRY(std::move(found)));
  }
  Cases all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Cases kept = TRY(one(list[i]));
    for (std::size_t j = 0; j < list.size(); ++j) {
      if (i == j) continue;
      Cases next;
      for (const SchemaCase& mine : kept) {
        auto parts = without(schema, mine, fitting[j]);
        if (!parts) return std::unexpected(parts.error());
        if (parts->empty() && context_.is_strict())
          return context_.strict_error(list,
                                       fmt::format("branches {} and {} may both fit; make them "
                                                   "exclude each other, or use anyOf",
                                                   std::min(i, j), std::max(i, j)));
        if (parts->empty()) {
          context_.add_unchecked(schema, "'oneOf' as 'anyOf'");
          parts->push_back(mine);
        }
        for (SchemaCase& part : *parts) next.push_back(std::move(part));
      }
      kept = std::move(next);
    }
    for (SchemaCase& one : kept) all.push_back(std::move(one));
  }
  return all;
}

/// What is left of a branch without the values that another branch allows; empty if that is
/// not known. `base` holds the keywords beside oneOf.
Result<Cases> SchemaAnalyzer::without(const OrderedJson& base, const SchemaCase& one,
                                      const Cases& other) {
  SchemaCase context;
  context.parts.push_back(&base);
  const Cases with_base = TRY(product(base, {context}, {one}));
  Cases left{one};
  for (const SchemaCase& theirs : other) {
    const SchemaCase shared = TRY(product(base, with_base, {theirs})).front();
    if (TRY(is_empty(shared))) continue;
    // Generated objects have no members that the schema does not name; see ObjectFacts.
    const ObjectFacts mine = TRY(object(with_base.front()));
    if (mine.is_closed) {
      SchemaCase closed = shared;
      closed.only.emplace(mine.names.begin(), mine.names.end());
      if (TRY(is_empty(closed))) {
        for (SchemaCase& part : left) part.only = closed.only;
        continue;
      }
    }
    // A value that lacks a name that the other branch requires does not fit there.
    const unsigned types = TRY(this->types(with_base.front()));
    Cases next;
    for (const std::string& name : TRY(object(theirs)).required) {
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

Result<bool> SchemaAnalyzer::are_empty(const Schemas& schemas) {
  if (schemas.empty() || proving_ >= kMaxProofDepth) return false;
  Schemas outer;
  std::swap(outer, open_);  // they are for another value, so they may refer to open schemas
  ++proving_;
  const auto result = [&]() -> Result<bool> {
    for (const SchemaCase& one : TRY(cases(schemas)))
      if (!TRY(is_empty(one))) return false;
    return true;
  }();
  --proving_;
  std::swap(outer, open_);
  return result;
}

/// True only if it is certain that no value satisfies the case.
Result<bool> SchemaAnalyzer::is_empty(const SchemaCase& one) {
  ++proving_;
  const auto result = [&]() -> Result<bool> {
    const unsigned types = TRY(this->types(one));
    if (types == 0) return true;
    if (const auto values = TRY(literals(one))) return values->empty();
    for (unsigned type = NullType; type <= FractionType; type *= 2)
      if ((types & type) != 0 && !TRY(has_no(one, static_cast<SchemaType>(type)))) return false;
    return true;
  }();
  --proving_;
  return result;
}

Result<bool> SchemaAnalyzer::has_no(const SchemaCase& one, SchemaType type) {
  switch (type) {
    case ObjectType:
      return has_no_object(one);
    case ArrayType: {
      const CountRange count = TRY(counts(one, "minItems", "maxItems"));
      if (count.is_empty()) return true;
      for (std::size_t i = 0; i < std::min<std::uint64_t>(count.min, 4); ++i) {
        const Schemas schemas = TRY(element(one, i));
        if (TRY(are_empty(schemas))) return true;
      }
      return false;
    }
    case StringType: {
      if (TRY(counts(one, "minLength", "maxLength")).is_empty()) return true;
      const bool has_pattern = std::ranges::any_of(
          one.parts, [](const auto* part) { return part->contains("pattern"); });
      if (!has_pattern) return false;
      const auto set = TRY(texts(one));
      return set && set->is_empty();
    }
    case IntegerType:
    case FractionType: {
      const NumberFacts facts = TRY(numbers(one));
      for (const NumericBound& low : facts.low) {
        for (const NumericBound& high : facts.high) {
          const auto above = low.value->get<double>() - high.value->get<double>();
          if (above > 0 || (above == 0 && (low.exclusive || high.exclusive))) return true;
          if (above == 0 && type == FractionType &&
              low.value->get<double>() == std::floor(low.value->get<double>()))
            return true;
        }
      }
      return false;
    }
    case NullType:
    case BooleanType:
    case AnyType:
      break;
  }
  return false;
}

Result<bool> SchemaAnalyzer::has_no_object(const SchemaCase& one) {
  const ObjectFacts facts = TRY(object(one));
  const CountRange count = TRY(counts(one, "minProperties", "maxProperties"));
  if (count.is_empty() || (count.max && *count.max < facts.required.size())) return true;
  for (const std::string& name : facts.required) {
    if (one.forbidden.contains(name) || (one.only && !one.only->contains(name))) return true;
    const Schemas schemas = TRY(member(one, name));
    if (TRY(are_empty(schemas))) return true;
  }
  return false;
}

}  // namespace leasehold
