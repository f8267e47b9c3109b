#include "ipc/control/transport/excess.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/ordered_json.hpp"

namespace leasehold::control {
namespace {

/// A number, `true`, `false` or `null` needs no allocation of its own: it counts as a quarter of
/// another value. A member counts in addition to its name and its value, because readers look it
/// up.
constexpr std::size_t kQuarters = 4;

bool is_part_of_scalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

}  // namespace

std::optional<std::string> exceeded_limit(std::string_view json, const Limits& limits) {
  std::size_t depth = 0, quarters = 0;
  bool in_text = false, in_scalar = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
      continue;
    }
    const bool was_in_scalar = std::exchange(in_scalar, is_part_of_scalar(c));
    if (in_scalar && !was_in_scalar) ++quarters;
    if (c == '"' || c == '[' || c == '{' || c == ':') quarters += kQuarters;
    if (quarters > kQuarters * limits.max_values) {
      return fmt::format(
          "more than {} objects, arrays and texts; members count, too, and {} numbers as one",
          limits.max_values, kQuarters);
    }
    if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.max_depth) {
        return fmt::format("more than {} levels of objects and arrays", limits.max_depth);
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

Result<nlohmann::ordered_json> parse_request_json(std::string_view json, std::string_view what) {
  if (const auto excess = exceeded_limit(json, kRequestLimits))
    return fail(Errc::BadRequest, fmt::format("{} has {}; send less", what, *excess));
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return fail(Errc::BadRequest, fmt::format("{} is empty; send JSON", what));
  if (auto parsed = parse_ordered_json(json)) return parsed;
  return fail(Errc::BadRequest,
              fmt::format("{} is not JSON in UTF-8; check its quotes, commas and brackets", what));
}

}  // namespace leasehold::control
