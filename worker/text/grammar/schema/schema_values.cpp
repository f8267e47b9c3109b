#include "worker/text/grammar/schema/schema_values.hpp"

#include <algorithm>
#include <cmath>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

unsigned type_of(const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::object:
      return ObjectType;
    case OrderedJson::value_t::array:
      return ArrayType;
    case OrderedJson::value_t::string:
      return StringType;
    case OrderedJson::value_t::boolean:
      return BooleanType;
    case OrderedJson::value_t::number_integer:
    case OrderedJson::value_t::number_unsigned:
      return IntegerType;
    case OrderedJson::value_t::number_float:
      // In JSON schema, 1.0 is an integer.
      return value.get<double>() == std::floor(value.get<double>()) ? IntegerType : FractionType;
    default:
      return NullType;
  }
}

/// Compares JSON values. The order of members does not matter.
bool is_equal(const OrderedJson& a, const OrderedJson& b) {
  if (!a.is_structured() || !b.is_structured()) return a == b;
  return nlohmann::json(a) == nlohmann::json(b);
}

bool is_listed(const OrderedJson& part, const OrderedJson& value) {
  if (part.contains("const") && !is_equal(part.at("const"), value)) return false;
  if (!part.contains("enum") || !part.at("enum").is_array()) return true;
  return std::ranges::any_of(part.at("enum"),
                             [&](const OrderedJson& one) { return is_equal(one, value); });
}

}  // namespace

Result<std::optional<Schemas>> SchemaValues::literals(const SchemaCase& one) {
  std::optional<Schemas> listed;
  const OrderedJson* source = nullptr;
  for (const OrderedJson* part : one.parts) {
    const auto values = part->find("enum");
    if (values != part->end() && (!values->is_array() || values->empty()))
      return context_.error(*values, "expected a list of values");
    if (listed) continue;
    source = part;
    if (part->contains("const")) {
      listed = Schemas{&part->at("const")};
    } else if (values != part->end()) {
      listed.emplace();
      for (const OrderedJson& value : *values) listed->push_back(&value);
    }
  }
  if (!listed) return listed;
  std::size_t n_others = 0;  // values that each value is compared with
  for (const OrderedJson* part : one.parts)
    if (part != source && part->contains("enum")) n_others += part->at("enum").size();
  Schemas kept;
  for (const OrderedJson* value : *listed) {
    TRY(context_.spend(*source, 1 + value->size() + n_others / 8));
    const bool is_in_all = std::ranges::all_of(one.parts, [&](const OrderedJson* part) {
      return (part == source && !part->contains("const")) || is_listed(*part, *value);
    });
    if (is_in_all && TRY(fits(one, *value))) kept.push_back(value);
  }
  return std::optional(kept);
}

Result<std::optional<TextAutomaton>> SchemaValues::texts(const Schemas& schemas) {
  TextAutomaton all = TextAutomaton::of_words({});
  for (const SchemaCase& one : TRY(cases_.of(schemas))) {
    if ((TRY(facts_.types(one)) & StringType) == 0) continue;
    std::optional<TextAutomaton> some;
    if (const auto values = TRY(literals(one))) {
      std::vector<std::string> words;
      for (const OrderedJson* value : *values)
        if (value->is_string()) words.push_back(value->get<std::string>());
      some = TextAutomaton::of_words(words);
    } else {
      some = TRY(facts_.texts(one));
    }
    if (!some) return std::optional<TextAutomaton>();
    auto more = TextAutomaton::either(all, *some, context_.work());
    if (!more) return context_.too_much_work(*schemas.front());
    all = *std::move(more);
  }
  return std::optional(all);
}

Result<bool> SchemaValues::admits(const Schemas& schemas, const OrderedJson& value) {
  for (const SchemaCase& one : TRY(cases_.of(schemas)))
    if (TRY(admits(one, value))) return true;
  return schemas.empty();
}

Result<bool> SchemaValues::admits(const SchemaCase& one, const OrderedJson& value) {
  for (const OrderedJson* part : one.parts) {
    TRY(context_.spend(*part, 1 + part->size()));
    if (!is_listed(*part, value)) return false;
  }
  return fits(one, value);
}

/// Does what `admits` does, but ignores the keywords that list values.
Result<bool> SchemaValues::fits(const SchemaCase& one, const OrderedJson& value) {
  if ((TRY(facts_.types(one)) & type_of(value)) == 0) return false;
  if (value.is_object()) return admits_object(one, value);
  if (value.is_array()) return admits_array(one, value);
  if (value.is_string()) return admits_text(one, value.get<std::string>());
  if (value.is_number()) return admits_number(one, value);
  return true;
}

Result<bool> SchemaValues::admits_object(const SchemaCase& one, const OrderedJson& value) {
  const ObjectFacts facts = TRY(facts_.object(one));
  const CountRange count = TRY(facts_.counts(one, "minProperties", "maxProperties"));
  if (value.size() < count.min || (count.max && value.size() > *count.max)) return false;
  for (const std::string& name : facts.required)
    if (!value.contains(name)) return false;
  for (auto entry = value.begin(); entry != value.end(); ++entry) {
    const std::string& name = entry.key();
    if (one.excludes(name)) return false;
    if (!TRY(admits(facts.property_names, OrderedJson(name)))) return false;
    const Schemas schemas = TRY(facts_.member(one, name));
    if (!TRY(admits(schemas, *entry))) return false;
  }
  return true;
}

Result<bool> SchemaValues::admits_array(const SchemaCase& one, const OrderedJson& value) {
  const CountRange count = TRY(facts_.counts(one, "minItems", "maxItems"));
  if (value.size() < count.min || (count.max && value.size() > *count.max)) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Schemas schemas = TRY(facts_.element(one, i));
    if (!TRY(admits(schemas, value[i]))) return false;
  }
  return true;
}

Result<bool> SchemaValues::admits_text(const SchemaCase& one, const std::string& text) {
  const CountRange length = TRY(facts_.counts(one, "minLength", "maxLength"));
  const std::size_t n = count_characters(text);
  if (n < length.min || (length.max && n > *length.max)) return false;
  for (const OrderedJson* part : one.parts) {
    const auto found = part->find("pattern");
    if (found == part->end()) continue;
    if (!found->is_string()) return context_.error(*found, "expected text");
    TRY(context_.spend(*part, text.size()));
    const TextAutomaton* texts = TRY(facts_.pattern(*found, found->get<std::string>()));
    if (texts != nullptr && !texts->accepts(text)) return false;
  }
  return true;
}

Result<bool> SchemaValues::admits_number(const SchemaCase& one, const OrderedJson& value) {
  const NumberFacts facts = TRY(facts_.numbers(one));
  const auto number = value.get<double>();
  const auto keeps = [number](bool is_upper) {
    return [number, is_upper](const NumericBound& bound) {
      const auto limit = bound.value->get<double>();
      if (number == limit) return !bound.exclusive;
      return is_upper ? number < limit : number > limit;
    };
  };
  return std::ranges::all_of(facts.low, keeps(false)) &&
         std::ranges::all_of(facts.high, keeps(true)) &&
         std::ranges::all_of(facts.multiples_of, [number](std::uint64_t step) {
           return std::fmod(number, static_cast<double>(step)) == 0.0;
         });
}

}  // namespace leasehold
