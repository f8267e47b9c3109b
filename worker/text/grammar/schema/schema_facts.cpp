#include "worker/text/grammar/schema/schema_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/utf8.hpp"
#include "worker/text/grammar/schema/schema_formats.hpp"

namespace leasehold {
namespace {

/// Longer lengths are cut to this one where a pattern or format applies, too.
constexpr std::uint32_t kMaxAutomatonLength = 512;

constexpr std::pair<std::string_view, unsigned> kTypes[] = {{"object", ObjectType},
                                                            {"array", ArrayType},
                                                            {"string", StringType},
                                                            {"integer", IntegerType},
                                                            {"number", IntegerType | FractionType},
                                                            {"boolean", BooleanType},
                                                            {"null", NullType}};

Result<unsigned> types_of(const SchemaContext& context, const OrderedJson& type) {
  if (!type.is_string() && (!type.is_array() || type.empty()))
    return context.error(type, "expected the name of a type or a list of them");
  unsigned all = 0;
  for (const OrderedJson& one : type.is_array() ? type : OrderedJson::array({type})) {
    const auto known = std::ranges::find(kTypes, one.is_string() ? one.get<std::string>() : "",
                                         &std::pair<std::string_view, unsigned>::first);
    if (known == std::end(kTypes))
      return context.error(type,
                           "expected object, array, string, number, integer, boolean or null");
    all |= known->second;
  }
  return all;
}

const OrderedJson* member_of(const OrderedJson& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

/// The tuple, which is in `prefixItems`, or in older drafts in `items`.
const OrderedJson* tuple_of(const OrderedJson& part) {
  const OrderedJson* prefix = member_of(part, "prefixItems");
  const OrderedJson* items = member_of(part, "items");
  if (prefix != nullptr) return prefix;
  return items != nullptr && items->is_array() ? items : nullptr;
}

/// The schema of elements after the tuple.
const OrderedJson* rest_of(const OrderedJson& part) {
  const OrderedJson* items = member_of(part, "items");
  return items != nullptr && items->is_array() ? member_of(part, "additionalItems") : items;
}

bool closes_object(const OrderedJson& part) {
  return part.contains("properties") && !part.contains("additionalProperties");
}

}  // namespace

/// Refuses keywords that no grammar can enforce, if they matter for these types.
Result<void> SchemaFacts::check_enforceable(const OrderedJson& part, unsigned types) {
  if (is_proving()) return {};
  const auto is_set = [&](const char* keyword) {
    return part.contains(keyword) && part.at(keyword) != OrderedJson(true);
  };
  for (const char* keyword : {"not", "if", "$dynamicRef", "$recursiveRef"})
    if (part.contains(keyword)) TRY(context_.refuse_unenforceable(part, keyword));
  if ((types & ArrayType) != 0) {
    if (part.contains("contains")) TRY(context_.refuse_unenforceable(part, "contains"));
    if (is_set("unevaluatedItems")) TRY(context_.refuse_unenforceable(part, "unevaluatedItems"));
    const auto unique = part.find("uniqueItems");
    const auto max = part.find("maxItems");
    const bool is_short = max != part.end() && max->is_number() && max->get<double>() <= 1;
    if (unique != part.end() && *unique == OrderedJson(true) && !is_short)
      TRY(context_.refuse_unenforceable(part, "uniqueItems"));
  }
  if ((types & ObjectType) != 0 && is_set("unevaluatedProperties"))
    TRY(context_.refuse_unenforceable(part, "unevaluatedProperties"));
  if ((types & StringType) != 0 && part.contains("format")) return check_format(part);
  return {};
}

/// Lists a format that is not regular as unchecked, because formats are only annotations.
Result<void> SchemaFacts::check_format(const OrderedJson& part) {
  const OrderedJson& format = part.at("format");
  if (!format.is_string()) return context_.error(format, "expected text");
  const auto name = format.get<std::string>();
  if (pattern_of_format(name).empty())
    context_.add_unchecked(part, fmt::format("'format' \"{}\"", printable_excerpt(name)));
  return {};
}

const OrderedJson& SchemaFacts::place(const SchemaCase& one) const {
  return one.parts.empty() ? context_.root() : *one.parts.front();
}

Result<unsigned> SchemaFacts::types(const SchemaCase& one) {
  unsigned all = AnyType;
  for (const OrderedJson* part : one.parts) {
    TRY(context_.spend(*part, 1 + part->size() / 8));  // each keyword is searched for
    if (part->contains("type")) all &= TRY(types_of(context_, part->at("type")));
  }
  for (const OrderedJson* part : one.parts) TRY(check_enforceable(*part, all));
  return all;
}

Result<void> SchemaFacts::add_bound(const OrderedJson& part, bool upper, NumberFacts& facts) {
  const char* inclusive = upper ? "maximum" : "minimum";
  const char* exclusive = upper ? "exclusiveMaximum" : "exclusiveMinimum";
  std::vector<NumericBound>& bounds = upper ? facts.high : facts.low;
  const OrderedJson* limit = member_of(part, inclusive);
  const OrderedJson* strict = member_of(part, exclusive);
  if (limit != nullptr) {
    if (!limit->is_number()) return context_.error(*limit, "expected a number");
    // Draft 4: a boolean says whether the bound itself is excluded.
    bounds.push_back({limit, strict != nullptr && *strict == OrderedJson(true)});
  }
  if (strict == nullptr || strict->is_boolean()) return {};
  if (!strict->is_number()) return context_.error(*strict, "expected a number");
  bounds.push_back({strict, true});
  return {};
}

Result<NumberFacts> SchemaFacts::numbers(const SchemaCase& one) {
  NumberFacts facts;
  for (const OrderedJson* part : one.parts) {
    TRY(add_bound(*part, false, facts));
    TRY(add_bound(*part, true, facts));
    const OrderedJson* step = member_of(*part, "multipleOf");
    if (step == nullptr) continue;
    if (!step->is_number() || step->get<double>() <= 0)
      return context_.error(*step, "expected a number above 0");
    const double value = step->get<double>();
    const bool is_whole =
        value < 1e15 && value == static_cast<double>(static_cast<std::uint64_t>(value));
    if (is_whole) {
      facts.multiples_of.push_back(static_cast<std::uint64_t>(value));
    } else if (!is_proving()) {
      // Validators divide binary fractions, so most of them do not count 0.3 as a multiple of 0.1.
      TRY(context_.refuse_unenforceable(*part, "multipleOf"));
    }
  }
  return facts;
}

Result<CountRange> SchemaFacts::counts(const SchemaCase& one, const char* min, const char* max) {
  CountRange range;
  for (const OrderedJson* part : one.parts) {
    for (const char* keyword : {min, max}) {
      const OrderedJson* limit = member_of(*part, keyword);
      if (limit == nullptr) continue;
      const bool is_count = limit->is_number() && limit->get<double>() >= 0 &&
                            limit->get<double>() <= 9e15 &&
                            limit->get<double>() == std::floor(limit->get<double>());
      if (!is_count) return context_.error(*limit, "expected a number from 0 to 9e15");
      const auto count = static_cast<std::uint64_t>(limit->get<double>());
      if (keyword == min) range.min = std::max(range.min, count);
      if (keyword == max) range.max = std::min(range.max.value_or(count), count);
    }
  }
  return range;
}

Result<Repetition> SchemaFacts::repetition(const SchemaCase& one, const char* min,
                                           const char* max) {
  const CountRange count = TRY(counts(one, min, max));
  if (count.min > kMaxRepetitions)
    return context_.error(place(one), fmt::format("{} is above {}", min, kMaxRepetitions));
  if (count.is_empty()) return context_.error(place(one), fmt::format("{} is above {}", min, max));
  Repetition result{.min = static_cast<std::uint32_t>(count.min), .max = {}};
  if (count.max)
    result.max = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count.max, kMaxRepetitions));
  return result;
}

Result<std::optional<Pattern>> SchemaFacts::parsed(const OrderedJson& at, const std::string& text) {
  TRY(context_.spend(at, 1 + text.size()));
  Result<Pattern> pattern = parse_pattern(text);
  if (pattern) return std::optional(*std::move(pattern));
  const std::string& why = pattern.error().detail;
  if (pattern.error().code == Errc::MalformedMessage) return context_.error(at, why);
  if (context_.is_strict()) return context_.strict_error(at, why);
  if (!is_proving())
    context_.add_unchecked(at, fmt::format("pattern \"{}\"", printable_excerpt(text)));
  return std::optional<Pattern>();
}

Result<const TextAutomaton*> SchemaFacts::pattern(const OrderedJson& at, const std::string& text) {
  const auto known = patterns_.find(text);
  if (known != patterns_.end()) return &known->second;
  const auto pattern = TRY(parsed(at, text));
  if (!pattern) return static_cast<const TextAutomaton*>(nullptr);
  auto automaton = automaton_of(*pattern, context_.work());
  if (!automaton) return context_.too_much_work(at);
  return &patterns_.emplace(text, *std::move(automaton)).first->second;
}

Result<void> SchemaFacts::add_texts(const OrderedJson& part, const TextAutomaton& more,
                                    std::optional<TextAutomaton>& all) {
  if (!all) TRY(context_.spend(part, more.states().size()));  // the cost of the copy
  all = all ? TextAutomaton::both(*all, more, context_.work()) : more;
  if (!all) return context_.too_much_work(part);
  return {};
}

Result<std::optional<TextAutomaton>> SchemaFacts::texts_of_patterns(const SchemaCase& one) {
  std::optional<TextAutomaton> all;
  for (const OrderedJson* part : one.parts) {
    for (const char* keyword : {"pattern", "format"}) {
      const OrderedJson* child = member_of(*part, keyword);
      if (child == nullptr) continue;
      if (!child->is_string()) return context_.error(*child, "expected text");
      auto text = child->get<std::string>();
      if (keyword == std::string_view("format")) {
        if (is_proving()) continue;  // most validators do not check formats
        text = pattern_of_format(text);
        if (text.empty()) continue;
      }
      const TextAutomaton* set = TRY(pattern(*child, text));
      if (set != nullptr) TRY(add_texts(*part, *set, all));
    }
  }
  return all;
}

Result<std::optional<TextAutomaton>> SchemaFacts::texts(const SchemaCase& one) {
  std::optional<TextAutomaton> all = TRY(texts_of_patterns(one));
  const CountRange length = TRY(counts(one, "minLength", "maxLength"));
  if (length.min == 0 && !length.max) return all;
  const OrderedJson& at = *one.parts.front();
  if (length.min > kMaxAutomatonLength)
    return context_.error(
        at, fmt::format("minLength is above {} beside another bound", kMaxAutomatonLength));
  const auto min = static_cast<std::uint32_t>(length.min);
  std::optional<std::uint32_t> max;
  if (length.max)
    max = static_cast<std::uint32_t>(std::min<std::uint64_t>(*length.max, kMaxAutomatonLength));
  if (length.is_empty()) {
    TRY(add_texts(at, TextAutomaton::of_words({}), all));
  } else {
    TRY(add_texts(at, TextAutomaton::of_length(min, max), all));
  }
  return all;
}

Result<ObjectFacts> SchemaFacts::object(const SchemaCase& one) {
  ObjectFacts facts{.names = {}, .required = one.required, .property_names = {}};
  bool is_open = false;
  std::set<std::string> known;
  const auto add_name = [&](const std::string& name) {
    if (known.insert(name).second) facts.names.push_back(name);
  };
  for (const OrderedJson* part : one.parts) {
    TRY(context_.spend(*part, 1));
    if (const OrderedJson* properties = member_of(*part, "properties")) {
      if (!properties->is_object()) return context_.error(*properties, "expected an object");
      for (auto entry = properties->begin(); entry != properties->end(); ++entry) {
        const std::string& name = entry.key();
        const OrderedJson& schema = *entry;
        add_name(name);
        // In draft 3, the schema of a property says whether the property is required.
        if (schema.is_object() && schema.value("required", OrderedJson()) == OrderedJson(true))
          facts.required.insert(name);
      }
    }
    if (const OrderedJson* list = member_of(*part, "required");
        list != nullptr && !list->is_boolean()) {
      if (!list->is_array()) return context_.error(*list, "expected a list of names");
      for (const OrderedJson& name : *list) {
        if (!name.is_string()) return context_.error(*list, "expected a list of names");
        facts.required.insert(name.get<std::string>());
      }
    }
    if (const OrderedJson* names = member_of(*part, "propertyNames"))
      facts.property_names.push_back(names);
    is_open = is_open || part->contains("additionalProperties");
    facts.is_closed = facts.is_closed || closes_object(*part);
  }
  for (const std::string& name : facts.required) add_name(name);
  facts.is_closed = facts.is_closed && !is_open;
  return facts;
}

Result<Schemas> SchemaFacts::member(const SchemaCase& one, const std::string& name) {
  Schemas all;
  for (const OrderedJson* part : one.parts) {
    TRY(context_.spend(*part, 1));
    const OrderedJson* properties = member_of(*part, "properties");
    const OrderedJson* named = properties == nullptr ? nullptr : context_.find(*properties, name);
    if (named != nullptr) all.push_back(named);
    bool is_matched = named != nullptr;
    if (const OrderedJson* patterns = member_of(*part, "patternProperties")) {
      if (!patterns->is_object()) return context_.error(*patterns, "expected an object");
      for (auto entry = patterns->begin(); entry != patterns->end(); ++entry) {
        TRY(context_.spend(*patterns, 1 + name.size()));
        const TextAutomaton* names = TRY(pattern(*patterns, entry.key()));
        if (names == nullptr || !names->accepts(name)) continue;
        all.push_back(&*entry);
        is_matched = true;
      }
    }
    const OrderedJson* other = member_of(*part, "additionalProperties");
    if (!is_matched && other != nullptr) all.push_back(other);
  }
  return all;
}

Result<std::size_t> SchemaFacts::tuple_size(const SchemaCase& one) {
  std::size_t size = 0;
  for (const OrderedJson* part : one.parts) {
    const OrderedJson* tuple = tuple_of(*part);
    if (tuple == nullptr) continue;
    if (!tuple->is_array()) return context_.error(*tuple, "expected a list of schemas");
    size = std::max(size, tuple->size());
  }
  return size;
}

Result<Schemas> SchemaFacts::element(const SchemaCase& one, std::size_t index) {
  Schemas all;
  for (const OrderedJson* part : one.parts) {
    TRY(context_.spend(*part, 1));
    const OrderedJson* tuple = tuple_of(*part);
    const OrderedJson* rest = rest_of(*part);
    if (tuple != nullptr && index < tuple->size()) {
      all.push_back(&(*tuple)[index]);
    } else if (rest != nullptr) {
      all.push_back(rest);
    }
  }
  return all;
}

}  // namespace leasehold
