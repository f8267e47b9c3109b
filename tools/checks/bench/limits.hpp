/// Limits a report is held against.
///
/// A limits file is one JSON object: {"limits": [{"name": "t_refuse_us.p99", "max": 25}, …]}. A
/// name is a path of keys through the report, joined by dots; "max", "min" or both. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct Limit {
  std::string name;
  std::optional<double> max;
  std::optional<double> min;
};

/// Errors: BadRequest saying which entry cannot be understood.
Result<std::vector<Limit>> parse_limits(const std::string& text);

struct LimitCheck {
  Limit limit;
  std::optional<double> value;  ///< None: the report does not have it, which is not ok either.
  bool ok = false;
};

std::vector<LimitCheck> check_limits(const nlohmann::json& report,
                                     const std::vector<Limit>& limits);

}  // namespace leasehold::bench
