#include "tests/unit/worker/text/grammar/schema_validator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "common/utf8.hpp"

namespace leasehold::testing {
namespace {

using Schema = nlohmann::ordered_json;
using Json = nlohmann::json;

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number() && std::fmod(value.get<double>(), 1.0) == 0.0;
  if (type == "number") return value.is_number();
  if (type == "null") return value.is_null();
  return type == value.type_name();  // object array string boolean
}

const std::regex& regex_of(const std::string& format) {
  static const std::string kTime =
      R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[-+]([01]\d|2[0-3]):[0-5]\d))";
  static const std::map<std::string, std::regex> kFormats{
      {"date", std::regex(R"(\d{4}-\d\d-\d\d)")},
      {"time", std::regex(kTime)},
      {"date-time", std::regex(R"(\d{4}-\d\d-\d\dT)" + kTime)},
      {"uuid", std::regex("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")}};
  return kFormats.at(format);
}

bool is_day(const std::string& text) {
  const int year = std::stoi(text.substr(0, 4));
  const auto month = static_cast<std::size_t>(std::stoi(text.substr(5, 2)));
  const int day = std::stoi(text.substr(8, 2));
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const int days[] = {0, 31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month >= 1 && month <= 12 && day >= 1 && day <= days[month];
}

std::string check_string(const Schema& schema, const std::string& text) {
  const std::size_t length = count_characters(text);
  if (schema.contains("minLength") && length < schema["minLength"].get<std::size_t>())
    return "short";
  if (schema.contains("maxLength") && length > schema["maxLength"].get<std::size_t>())
    return "long";
  if (schema.contains("pattern") &&
      !std::regex_search(text, std::regex(schema["pattern"].get<std::string>())))
    return "pattern";
  if (!schema.contains("format")) return {};
  const auto format = schema["format"].get<std::string>();
  if (!std::regex_match(text, regex_of(format))) return "format";
  return format.starts_with("date") && !is_day(text) ? "no such day" : "";
}

std::string check_number(const Schema& schema, double value) {
  const auto bound = [&](const char* key) { return schema[key].get<double>(); };
  if (schema.contains("minimum") && value < bound("minimum")) return "minimum";
  if (schema.contains("maximum") && value > bound("maximum")) return "maximum";
  if (schema.contains("exclusiveMinimum") && value <= bound("exclusiveMinimum")) return "above";
  if (schema.contains("exclusiveMaximum") && value >= bound("exclusiveMaximum")) return "below";
  return {};
}

std::string check_array(const Schema& document, const Schema& schema, const Json& value) {
  if (schema.contains("minItems") && value.size() < schema["minItems"].get<std::size_t>())
    return "few";
  if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<std::size_t>())
    return "many";
  const Schema prefix = schema.value("prefixItems", Schema::array());
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Schema item = i < prefix.size() ? prefix[i] : schema.value("items", Schema(true));
    if (auto why = why_invalid(document, item, value[i]); !why.empty())
      return fmt::format("[{}]: {}", i, why);
  }
  return {};
}

std::string check_object(const Schema& document, const Schema& schema, const Json& value) {
  const Schema required = schema.value("required", Schema::array());
  for (const auto& name : required)
    if (!value.contains(name.get<std::string>())) return "lacks " + name.get<std::string>();
  const Schema properties = schema.value("properties", Schema::object());
  for (const auto& [name, member] : value.items()) {
    const Schema of_member = properties.contains(name)
                                 ? properties[name]
                                 : schema.value("additionalProperties", Schema(true));
    if (auto why = why_invalid(document, of_member, member); !why.empty())
      return fmt::format("{}: {}", name, why);
  }
  return {};
}

std::string check_combinators(const Schema& document, const Schema& schema, const Json& value) {
  const auto count_valid = [&](const char* keyword) {
    return std::ranges::count_if(schema[keyword], [&](const Schema& one) {
      return why_invalid(document, one, value).empty();
    });
  };
  if (schema.contains("anyOf") && count_valid("anyOf") == 0) return "anyOf";
  if (schema.contains("oneOf") && count_valid("oneOf") != 1) return "oneOf";
  if (schema.contains("allOf") &&
      count_valid("allOf") != static_cast<std::ptrdiff_t>(schema["allOf"].size()))
    return "allOf";
  return {};
}

}  // namespace

std::string why_invalid(const Schema& document, const Schema& schema, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>() ? "" : "nothing is allowed";
  if (schema.contains("$ref")) {
    const Schema::json_pointer at(schema["$ref"].get<std::string>().substr(1));
    return why_invalid(document, document.at(at), value);
  }
  if (schema.contains("const") && Json(schema["const"]) != value) return "const";
  if (schema.contains("enum") &&
      std::ranges::none_of(schema["enum"], [&](const Schema& one) { return Json(one) == value; }))
    return "enum";
  if (schema.contains("type")) {
    const Schema types =
        schema["type"].is_array() ? schema["type"] : Schema::array({schema["type"]});
    if (std::ranges::none_of(types, [&](const Schema& t) { return is_of_type(value, t); }))
      return "type " + types.dump();
  }
  if (auto why = check_combinators(document, schema, value); !why.empty()) return why;
  if (value.is_string()) return check_string(schema, value.get<std::string>());
  if (value.is_number()) return check_number(schema, value.get<double>());
  if (value.is_array()) return check_array(document, schema, value);
  if (value.is_object()) return check_object(document, schema, value);
  return {};
}

}  // namespace leasehold::testing
