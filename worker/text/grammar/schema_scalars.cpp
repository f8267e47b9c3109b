#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "worker/text/grammar/integer_range.hpp"
#include "worker/text/grammar/schema_compiler.hpp"
#include "worker/text/grammar/schema_pattern.hpp"

namespace leasehold {
namespace {

bool is_of_type(const OrderedJson& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  // In JSON schema, 1.0 is an integer.
  return value.is_number() && value.get<double>() == std::floor(value.get<double>());
}

/// The integer nearest to the bound on the allowed side.
std::int64_t nearest_integer(const OrderedJson& bound, bool upper) {
  const double exact = bound.get<double>();
  const auto max = static_cast<double>(kMaxSafeInteger);
  const double whole = upper ? std::floor(exact) : std::ceil(exact);
  return static_cast<std::int64_t>(std::clamp(whole, -max, max));
}

}  // namespace

Symbols SchemaCompiler::quoted(const Symbols& inside) {
  const Symbols quote = builder_.text("\"");
  return GrammarBuilder::join(quote, inside, quote);
}

Result<Symbols> SchemaCompiler::literals(const SchemaNode& node) {
  const bool is_const = node.schema.contains("const");
  const char* keyword = is_const ? "const" : "enum";
  TRY(check_keywords(node, {"type", keyword}));
  const SchemaNode list = node.at(keyword);
  const bool is_list = list.schema.is_array() && !list.schema.empty();
  if (!is_const && !is_list) return schema_error(list, "expected a list of values");
  const std::vector<std::string> types = TRY(types_of(node));
  std::vector<Symbols> all;
  for (const OrderedJson& value : is_const ? OrderedJson::array({list.schema}) : list.schema) {
    const auto fits = [&](const std::string& type) { return is_of_type(value, type); };
    if (types.empty() || std::ranges::any_of(types, fits))
      all.push_back(builder_.text(value.dump()));
  }
  if (all.empty()) return schema_error(list, "no value has the type");
  return builder_.choice(std::move(all));
}

Result<Repetition> SchemaCompiler::bounds(const SchemaNode& node, const char* min,
                                          const char* max) {
  Repetition result;
  for (const char* keyword : {min, max}) {
    const auto found = node.schema.find(keyword);
    if (found == node.schema.end()) continue;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kMaxRepetitions)
      return schema_error(node.at(keyword),
                          fmt::format("expected a number from 0 to {}", kMaxRepetitions));
    const auto count = found->get<std::uint32_t>();
    if (keyword == min) {
      result.min = count;
    } else {
      result.max = count;
    }
  }
  if (!result.max || *result.max >= result.min) return result;
  return schema_error(node, fmt::format("{} is above {}", min, max));
}

Result<Symbols> SchemaCompiler::string(const SchemaNode& node) {
  const OrderedJson& schema = node.schema;
  const bool has_length = schema.contains("minLength") || schema.contains("maxLength");
  if (static_cast<int>(has_length) + static_cast<int>(schema.contains("pattern")) +
          static_cast<int>(schema.contains("format")) >
      1)
    return schema_error(node, "use only one of minLength/maxLength, 'pattern' and 'format'");
  if (has_length) {
    const Repetition length = TRY(bounds(node, "minLength", "maxLength"));
    return quoted(builder_.repeat(json_["character"], length));
  }
  for (const char* keyword : {"pattern", "format"}) {
    if (!schema.contains(keyword)) continue;
    const SchemaNode child = node.at(keyword);
    if (!child.schema.is_string()) return schema_error(child, "expected text");
    const auto text = child.schema.get<std::string>();
    if (keyword == std::string_view("pattern")) {
      const Result<Symbols> pattern = parse_pattern(text, builder_);
      if (!pattern) return schema_error(child, pattern.error().detail);
      return quoted(*pattern);
    }
    static const std::set<std::string> kFormats{"date", "time", "date-time", "uuid"};
    if (!kFormats.contains(text))
      return schema_error(
          child, fmt::format("'{}' is not supported; date, time, date-time and uuid are", text));
    return quoted(json_[text]);
  }
  return json_["string"];
}

Result<Symbols> SchemaCompiler::integer(const SchemaNode& node) {
  std::int64_t low = -kMaxSafeInteger;
  std::int64_t high = kMaxSafeInteger;
  for (const char* keyword : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    const auto found = node.schema.find(keyword);
    if (found == node.schema.end()) continue;
    if (!found->is_number()) return schema_error(node.at(keyword), "expected a number");
    const bool upper = std::string_view(keyword).ends_with("aximum");
    const bool exclusive = std::string_view(keyword).starts_with("exclusive");
    std::int64_t bound = nearest_integer(*found, upper);
    const bool is_hit = static_cast<double>(bound) == found->get<double>();
    if (exclusive && is_hit) bound += upper ? -1 : 1;
    if (upper) {
      high = std::min(high, bound);
    } else {
      low = std::max(low, bound);
    }
  }
  if (low > high) return schema_error(node, "no integer is within the bounds");
  return integer_range(builder_, low, high);
}

}  // namespace leasehold
