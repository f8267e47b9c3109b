/// Checks a report against limits. Pure.
///
/// A limits file is one JSON object: {"limits": [{"name": "t_refuse_us.p99", "max": 25}, …]}. A
/// name is a path of keys in the report, joined by dots. An entry has "max", "min" or both. With
/// "per", also a path, the value is divided by that value of the same report, so that the limit
/// holds on slower and faster machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct Limit {
  std::string name;
  std::string per;  ///< Empty: do not divide.
  std::optional<double> max;
  std::optional<double> min;
};

/// Errors: BadRequest, which shows the invalid entry.
Result<std::vector<Limit>> parse_limits(const std::string& text);

struct LimitCheck {
  Limit limit;
  /// Nothing if the report lacks the value or its divisor; then `ok` is false.
  std::optional<double> value;
  bool ok = false;
};

std::vector<LimitCheck> check_limits(const nlohmann::json& report,
                                     const std::vector<Limit>& limits);

}  // namespace leasehold::bench
