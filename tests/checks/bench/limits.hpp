/// Checks a report against limits. Pure.
///
/// A limits file is one JSON object: {"limits": [{"name": "t_refuse_us.p99", "max": 25}, …]}. A
/// name is a path of keys in the report, joined by dots. An entry has "max", "min" or both. "per"
/// is also a path: the value is divided by the value there in the same report, so that the limit
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
  std::string per;  ///< Empty: the value is not divided.
  std::optional<double> max;
  std::optional<double> min;
};

/// Errors: BadRequest with the entry that is wrong.
Result<std::vector<Limit>> parse_limits(const std::string& text);

/// A value that is equal to a limit is within it.
bool is_within(const Limit& limit, double value);

struct LimitCheck {
  Limit limit;
  /// nullopt if the report lacks the value or the divisor; then `ok` is false.
  std::optional<double> value;
  /// Number of samples, the "n" beside the value; nullopt if the report does not say it.
  std::optional<double> samples;
  bool ok = false;
};

std::vector<LimitCheck> check_limits(const nlohmann::json& report,
                                     const std::vector<Limit>& limits);

}  // namespace leasehold::bench
