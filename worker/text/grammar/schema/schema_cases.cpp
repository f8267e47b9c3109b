#include <algorithm>

#include "worker/text/grammar/schema/schema_analyzer.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxCases = 512;  ///< The number of parses that a text may have.

/// True for keywords about the value itself. This file reads combinators; all other keywords are
/// annotations.
bool is_assertion(const std::string& keyword) {
  static const std::set<std::string> kAssertions{"type",
                                                 "enum",
                                                 "const",
                                                 "properties",
                                                 "required",
                                                 "additionalProperties",
                                                 "propertyNames",
                                                 "minProperties",
                                                 "patternProperties",
                                                 "maxProperties",
                                                 "items",
                                                 "prefixItems",
                                                 "minItems",
                                                 "maxItems",
                                                 "additionalItems",
                                                 "uniqueItems",
                                                 "contains",
                                                 "unevaluatedItems",
                                                 "minLength",
                                                 "maxLength",
                                                 "unevaluatedProperties",
                                                 "pattern",
                                                 "format",
                                                 "multipleOf",
                                                 "minimum",
                                                 "maximum",
                                                 "exclusiveMinimum",
                                                 "not",
                                                 "if",
                                                 "exclusiveMaximum",
                                                 "$dynamicRef",
                                                 "$recursiveRef"};
  return kAssertions.contains(keyword);
}

void add_once(Schemas& schemas, const OrderedJson* schema) {
  if (std::ranges::find(schemas, schema) == schemas.end()) schemas.push_back(schema);
}

/// The steps that a copy takes.
std::size_t work_of(const SchemaCase& one) {
  return one.parts.size() + one.required.size() + one.forbidden.size() +
         (one.only ? one.only->size() : 0);
}

/// The case of the values that satisfy both cases.
SchemaCase merged(const SchemaCase& a, const SchemaCase& b) {
  SchemaCase both = a;
  for (const OrderedJson* part : b.parts) add_once(both.parts, part);
  both.required.insert(b.required.begin(), b.required.end());
  both.forbidden.insert(b.forbidden.begin(), b.forbidden.end());
  if (b.only) {
    if (both.only) std::erase_if(*both.only, [&](const auto& n) { return !b.only->contains(n); });
    if (!both.only) both.only = b.only;
  }
  return both;
}

}  // namespace

Result<Cases> SchemaAnalyzer::cases(const Schemas& schemas) {
  Cases all{SchemaCase{}};
  for (const OrderedJson* schema : schemas) {
    const Cases more = TRY(one(*schema));
    all = TRY(product(*schema, all, more));
  }
  return all;
}

Result<Cases> SchemaAnalyzer::product(const OrderedJson& at, const Cases& a, const Cases& b) {
  Cases all;
  for (const SchemaCase& left : a) {
    for (const SchemaCase& right : b) {
      TRY(context_.spend(at, 1 + work_of(left) + work_of(right)));
      SchemaCase both = merged(left, right);
      if (a.size() == 1 || b.size() == 1 || std::ranges::find(all, both) == all.end())
        all.push_back(std::move(both));
    }
  }
  if (all.size() > kMaxCases)
    return context_.error(at, "its alternatives have more than 512 combinations; use fewer");
  return all;
}

Result<Cases> SchemaAnalyzer::one(const OrderedJson& schema) {
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

Result<Cases> SchemaAnalyzer::keywords(const OrderedJson& schema) {
  Cases all{SchemaCase{}};
  for (auto entry = schema.begin(); entry != schema.end(); ++entry) {
    const std::string& keyword = entry.key();
    const OrderedJson& value = *entry;
    TRY(context_.spend(schema, 1));
    const bool is_dependency = keyword == "dependencies" || keyword == "dependentRequired" ||
                               keyword == "dependentSchemas";
    if (is_assertion(keyword)) {
      for (SchemaCase& one : all) add_once(one.parts, &schema);
    } else if (keyword == "$ref") {
      const OrderedJson* target = TRY(context_.target(schema));
      if (target == nullptr) continue;
      const Cases more = TRY(one(*target));
      all = TRY(product(schema, all, more));
    } else if (keyword == "allOf") {
      if (!value.is_array() || value.empty())
        return context_.error(value, "expected a list of schemas");
      for (const OrderedJson& part : value) {
        const Cases more = TRY(one(part));
        all = TRY(product(value, all, more));
      }
    } else if (keyword == "anyOf") {
      const Cases more = TRY(any_of(value));
      all = TRY(product(schema, all, more));
    } else if (keyword == "oneOf") {
      const Cases more = TRY(one_of(schema, value));
      all = TRY(product(schema, all, more));
    } else if (is_dependency) {
      if (!value.is_object()) return context_.error(value, "expected an object");
      for (auto member = value.begin(); member != value.end(); ++member) {
        const Cases more = TRY(dependency(member.key(), *member));
        all = TRY(product(value, all, more));
      }
    }
  }
  return all;
}

Result<Cases> SchemaAnalyzer::any_of(const OrderedJson& list) {
  if (!list.is_array() || list.empty()) return context_.error(list, "expected a list of schemas");
  Cases all;
  for (const OrderedJson& branch : list)
    for (SchemaCase& found : TRY(one(branch))) all.push_back(std::move(found));
  return all;
}

/// One case without the member, and cases with the member and what it needs: names or a schema.
Result<Cases> SchemaAnalyzer::dependency(const std::string& name, const OrderedJson& needed) {
  SchemaCase without;
  without.forbidden.insert(name);
  SchemaCase with;
  with.required.insert(name);
  Cases all{without};
  if (!needed.is_array()) {
    const Cases described = TRY(one(needed));
    for (SchemaCase& found : TRY(product(needed, {with}, described)))
      all.push_back(std::move(found));
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
