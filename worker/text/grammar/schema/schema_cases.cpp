#include "worker/text/grammar/schema/schema_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "worker/text/grammar/schema/schema_proofs.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxCases = 512;  ///< A text may have a parse in each case.

/// Keywords about the value itself. This file reads combinators; all other keywords are
/// annotations.
constexpr std::string_view kAssertions[] = {"type",
                                            "enum",
                                            "const",
                                            "not",
                                            "if",
                                            "$dynamicRef",
                                            "$recursiveRef",
                                            "properties",
                                            "required",
                                            "additionalProperties",
                                            "propertyNames",
                                            "patternProperties",
                                            "unevaluatedProperties",
                                            "minProperties",
                                            "maxProperties",
                                            "items",
                                            "prefixItems",
                                            "additionalItems",
                                            "unevaluatedItems",
                                            "minItems",
                                            "maxItems",
                                            "uniqueItems",
                                            "contains",
                                            "minLength",
                                            "maxLength",
                                            "pattern",
                                            "format",
                                            "multipleOf",
                                            "minimum",
                                            "maximum",
                                            "exclusiveMinimum",
                                            "exclusiveMaximum"};

void add_once(Schemas& schemas, const OrderedJson* schema) {
  if (std::ranges::find(schemas, schema) == schemas.end()) schemas.push_back(schema);
}

/// The steps of work that a copy of the case costs.
std::size_t work_of(const SchemaCase& one) {
  return one.parts.size() + one.required.size() + one.forbidden.size() +
         (one.allowed ? one.allowed->size() : 0);
}

/// The case of the values that satisfy both cases.
SchemaCase merged(const SchemaCase& a, const SchemaCase& b) {
  SchemaCase both = a;
  for (const OrderedJson* part : b.parts) add_once(both.parts, part);
  both.required.insert(b.required.begin(), b.required.end());
  both.forbidden.insert(b.forbidden.begin(), b.forbidden.end());
  if (b.allowed) {
    if (both.allowed)
      std::erase_if(*both.allowed, [&](const auto& n) { return !b.allowed->contains(n); });
    if (!both.allowed) both.allowed = b.allowed;
  }
  return both;
}

}  // namespace

Result<Cases> cases_of_both(SchemaContext& context, const OrderedJson& at, const Cases& a,
                            const Cases& b) {
  Cases all;
  for (const SchemaCase& left : a) {
    for (const SchemaCase& right : b) {
      TRY(context.spend(at, 1 + work_of(left) + work_of(right)));
      SchemaCase both = merged(left, right);
      if (a.size() == 1 || b.size() == 1 || std::ranges::find(all, both) == all.end())
        all.push_back(std::move(both));
    }
  }
  if (all.size() > kMaxCases)
    return context.error(at, "its alternatives have more than 512 combinations; use fewer");
  return all;
}

Result<Cases> SchemaCases::of(const Schemas& schemas) {
  Schemas outer = std::exchange(open_, {});
  Result<Cases> all = Cases{SchemaCase{}};
  for (const OrderedJson* schema : schemas)
    if (all) all = narrowed(*schema, *schema, *std::move(all));
  open_ = std::move(outer);
  return all;
}

/// The cases of `all` that also satisfy `schema`.
Result<Cases> SchemaCases::narrowed(const OrderedJson& at, const OrderedJson& schema, Cases all) {
  return cases_of_both(context_, at, all, TRY(cases_of(schema)));
}

Result<Cases> SchemaCases::cases_of(const OrderedJson& schema) {
  if (schema.is_boolean()) return schema.get<bool>() ? Cases{SchemaCase{}} : Cases{};
  if (!schema.is_object())
    return context_.error(schema, "expected a schema: an object, true or false");
  if (std::ranges::find(open_, &schema) != open_.end())
    return context_.error(schema,
                          "refers to itself for the same value; begin with another keyword");
  open_.push_back(&schema);
  Result<Cases> found = keywords(schema);
  open_.pop_back();
  return found;
}

Result<Cases> SchemaCases::keywords(const OrderedJson& schema) {
  Cases all{SchemaCase{}};
  for (auto entry = schema.begin(); entry != schema.end(); ++entry) {
    const std::string& keyword = entry.key();
    const OrderedJson& value = *entry;
    TRY(context_.spend(schema, 1));
    const bool is_dependency = keyword == "dependencies" || keyword == "dependentRequired" ||
                               keyword == "dependentSchemas";
    if (std::ranges::find(kAssertions, keyword) != std::end(kAssertions)) {
      for (SchemaCase& one : all) add_once(one.parts, &schema);
    } else if (keyword == "$ref") {
      const OrderedJson* target = TRY(context_.target(schema));
      if (target != nullptr) all = TRY(narrowed(schema, *target, std::move(all)));
    } else if (keyword == "allOf") {
      if (!value.is_array() || value.empty())
        return context_.error(value, "expected a list of schemas");
      for (const OrderedJson& part : value) all = TRY(narrowed(value, part, std::move(all)));
    } else if (keyword == "anyOf" || keyword == "oneOf") {
      const Cases more = TRY(keyword == "anyOf" ? any_of(value) : one_of(schema, value));
      all = TRY(cases_of_both(context_, schema, all, more));
    } else if (is_dependency) {
      if (!value.is_object()) return context_.error(value, "expected an object");
      for (auto member = value.begin(); member != value.end(); ++member) {
        const Cases more = TRY(dependency(member.key(), *member));
        all = TRY(cases_of_both(context_, value, all, more));
      }
    }
  }
  return all;
}

Result<Cases> SchemaCases::any_of(const OrderedJson& list) {
  if (!list.is_array() || list.empty()) return context_.error(list, "expected a list of schemas");
  Cases all;
  for (const OrderedJson& branch : list)
    std::ranges::move(TRY(cases_of(branch)), std::back_inserter(all));
  return all;
}

/// While proving, oneOf is read as anyOf, which only adds values.
Result<Cases> SchemaCases::one_of(const OrderedJson& schema, const OrderedJson& list) {
  if (!list.is_array() || list.size() <= 1 || facts_.is_proving()) return any_of(list);
  std::vector<Cases> branches;  // read within a proof
  for (const OrderedJson& branch : list) {
    const SchemaFacts::Proof proof(facts_);
    branches.push_back(TRY(cases_of(branch)));
  }
  SchemaProofs proofs(facts_, *this);
  Cases all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Cases kept = TRY(cases_of(list[i]));
    for (std::size_t j = 0; j < list.size(); ++j) {
      if (i == j) continue;
      Cases next;
      for (const SchemaCase& mine : kept) {
        Cases left = TRY(proofs.without(schema, mine, branches[j]));
        if (left.empty()) {
          TRY(allow_overlap(schema, list, i, j));
          left.push_back(mine);
        }
        std::ranges::move(left, std::back_inserter(next));
      }
      kept = std::move(next);
    }
    std::ranges::move(kept, std::back_inserter(all));
  }
  return all;
}

/// Two branches of oneOf may both fit: strict mode refuses them, lenient mode lists them.
Result<void> SchemaCases::allow_overlap(const OrderedJson& schema, const OrderedJson& list,
                                        std::size_t i, std::size_t j) {
  if (context_.is_strict())
    return context_.strict_error(
        list, fmt::format("branches {} and {} may both fit; make them exclude each other, or use "
                          "anyOf",
                          std::min(i, j), std::max(i, j)));
  context_.add_unchecked(schema, "'oneOf' as 'anyOf'");
  return {};
}

/// One case without the member, and cases with the member and what it needs: names or a schema.
Result<Cases> SchemaCases::dependency(const std::string& name, const OrderedJson& needed) {
  SchemaCase without;
  without.forbidden.insert(name);
  SchemaCase with;
  with.required.insert(name);
  Cases all{without};
  if (!needed.is_array()) {
    std::ranges::move(TRY(narrowed(needed, needed, {with})), std::back_inserter(all));
    return all;
  }
  for (const OrderedJson& other : needed) {
    if (!other.is_string()) return context_.error(needed, "expected a list of names");
    with.required.insert(other.get<std::string>());
  }
  all.push_back(std::move(with));
  return all;
}

}  // namespace leasehold
