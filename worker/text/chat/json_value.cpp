#include "worker/text/chat/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Value;

constexpr std::uint32_t kMaxDepth =
    jinja::Limits{}.value_depth - 10;  // leaves room for enclosing values

Result<Value> convert(const Json& json, std::uint32_t depth);

Result<Value> list_of(const Json& json, std::uint32_t depth) {
  jinja::List list;
  for (const Json& element : json) {
    list.items.push_back(TRY(convert(element, depth + 1)));
    list.depth = std::max(list.depth, list.items.back().depth() + 1);
  }
  return Value(std::make_shared<const jinja::List>(std::move(list)));
}

Result<Value> dict_of(const Json& json, std::uint32_t depth) {
  std::vector<jinja::Dict::Entry> entries;
  for (const auto& [key, element] : json.items())
    entries.emplace_back(Value::text(key), TRY(convert(element, depth + 1)));
  return Value(std::make_shared<const jinja::Dict>(std::move(entries)));
}

Result<Value> convert(const Json& json, std::uint32_t depth) {
  if (depth > kMaxDepth) {
    return fail(Errc::BadRequest,
                fmt::format("the messages or tools nest deeper than {} levels", kMaxDepth));
  }
  switch (json.type()) {
    case Json::value_t::object:
      return dict_of(json, depth);
    case Json::value_t::array:
      return list_of(json, depth);
    case Json::value_t::string:
      return Value::text(json.get<std::string>());
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) return Value(json.get<double>());
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      return Value(jinja::None{});
  }
  return Value(jinja::None{});
}

}  // namespace

Result<Value> value_from_json(const nlohmann::ordered_json& json) {
  return convert(json, 0);
}

}  // namespace leasehold
