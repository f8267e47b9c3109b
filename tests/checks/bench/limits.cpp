#include "tests/checks/bench/limits.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/checks/bench/figures.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

std::optional<double> number_of(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

Result<Limit> parse_limit(const Json& entry) {
  const auto refuse = [&entry](const char* why) {
    return fail(Errc::BadRequest, fmt::format("limit {}: {}", entry.dump(), why));
  };
  if (!entry.is_object()) return refuse("expected an object");
  const auto name = entry.find("name");
  if (name == entry.end() || !name->is_string()) return refuse("expected a \"name\"");
  for (const auto& [key, value] : entry.items()) {
    if (key != "name" && key != "per" && key != "max" && key != "min") return refuse("unknown key");
  }
  const auto per = entry.find("per");
  if (per != entry.end() && !per->is_string()) return refuse("expected a string as \"per\"");
  Limit limit{.name = name->get<std::string>(),
              .per = per == entry.end() ? "" : per->get<std::string>(),
              .max = number_of(entry, "max"),
              .min = number_of(entry, "min")};
  if (!limit.max && !limit.min) return refuse("expected a number as \"max\" or \"min\"");
  return limit;
}

std::optional<double> value_of(const Json& report, const Limit& limit) {
  const auto value = number_at(report, limit.name);
  if (!value || limit.per.empty()) return value;
  const auto divisor = number_at(report, limit.per);
  if (!divisor || *divisor <= 0) return std::nullopt;
  return *value / *divisor;
}

/// "a.b.p99" is a figure of as many samples as "a.b.n" says.
std::optional<double> samples_of(const Json& report, const Limit& limit) {
  const std::size_t last = limit.name.rfind('.');
  if (last == std::string::npos) return std::nullopt;
  return number_at(report, limit.name.substr(0, last) + ".n");
}

}  // namespace

Result<std::vector<Limit>> parse_limits(const std::string& text) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("limits") || !file["limits"].is_array()) {
    return fail(Errc::BadRequest, R"(a limits file must be {"limits": [...]})");
  }
  std::vector<Limit> limits;
  for (const Json& entry : file["limits"]) limits.push_back(TRY(parse_limit(entry)));
  return limits;
}

bool is_within(const Limit& limit, double value) {
  return (!limit.max || value <= *limit.max) && (!limit.min || value >= *limit.min);
}

std::vector<LimitCheck> check_limits(const Json& report, const std::vector<Limit>& limits) {
  std::vector<LimitCheck> checks;
  for (const Limit& limit : limits) {
    const auto value = value_of(report, limit);
    checks.push_back({limit, value, samples_of(report, limit), value && is_within(limit, *value)});
  }
  return checks;
}

}  // namespace leasehold::bench
