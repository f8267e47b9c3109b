#include "tools/brokerctl/named.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/suggest.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

Errc code_of(const std::string& noun) {
  if (noun == "tenant") return Errc::UnknownTenant;
  if (noun == "worker") return Errc::UnknownWorker;
  if (noun == "request") return Errc::UnknownRequest;
  if (noun == "adapter") return Errc::UnknownAdapter;
  return noun == "lease" ? Errc::UnknownLease : Errc::BadRequest;
}

std::vector<std::string> names_in(const cli::Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.push_back(row.front());
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::optional<std::string> keep_named(const Named& named, Json& items, cli::Table& table) {
  if (named.names.empty()) return std::nullopt;
  const std::vector<std::string> known = names_in(table);
  Json kept = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (!contains(named.names, known[i])) continue;
    kept.push_back(items.at(i));
    rows.push_back(table.rows[i]);
  }
  items = std::move(kept);
  table.rows = std::move(rows);
  const auto missing = std::ranges::find_if_not(
      named.names, [&](const std::string& name) { return contains(known, name); });
  return missing == named.names.end() ? std::nullopt : std::optional(*missing);
}

Error unknown_name(const std::string& noun, const std::string& name, const cli::Table& known) {
  const std::string near = name.size() < 3 ? "" : nearest(name, names_in(known));
  const std::string hint = near.empty() ? fmt::format("`brokerctl get {}` lists all", noun)
                                        : fmt::format("did you mean '{}'?", near);
  return {code_of(noun), fmt::format("no {} '{}'; {}", noun, name, hint)};
}

}  // namespace leasehold::brokerctl
