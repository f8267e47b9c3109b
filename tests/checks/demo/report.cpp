#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/demo/observation.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::demo {
namespace {

using cli::nanoseconds_text;
using cli::or_dash;

std::vector<std::string> lease_row(const TenantResult& result, LeaseId id,
                                   const wire::LeaseView* lease) {
  std::vector<std::string> row{
      result.spec.name,
      fmt::format("{} of {}", result.observed.tokens.size(), result.undisturbed.tokens.size()),
      to_string(id)};
  if (lease == nullptr) {
    row.insert(row.end(), 7, "?");
    return row;
  }
  row.insert(
      row.end(),
      {std::string(name(lease->state)), std::string(name(lease->reason)), or_dash(lease->proof),
       nanoseconds_text(lease->clocks.refuse_ns), nanoseconds_text(lease->clocks.error_ns),
       nanoseconds_text(lease->clocks.quiet_ns), nanoseconds_text(lease->clocks.reuse_ns)});
  return row;
}

cli::Table lease_table(const Observation& seen) {
  cli::Table table{.columns = {{"TENANT"},
                               {"TOKENS", true},
                               {"LEASE"},
                               {"STATE"},
                               {"REASON"},
                               {"PROOF"},
                               {"T_REFUSE", true},
                               {"T_ERROR", true},
                               {"T_QUIET", true},
                               {"T_REUSE", true}}};
  for (const TenantResult& result : seen.results) {
    for (const LeaseId id : result.observed.leases) {
      table.rows.push_back(lease_row(result, id, seen.lease(id)));
    }
  }
  return table;
}

/// The questions with their answers, for people to judge.
std::string chats_text(const Observation& seen) {
  std::string text;
  for (const TenantResult& result : seen.results) {
    if (!result.spec.chat) continue;
    text += fmt::format("\n{} asked: {}\n{}\n", result.spec.name, result.spec.prompt,
                        result.observed.text);
  }
  return text;
}

}  // namespace

std::string report_text(const Observation& seen, const std::vector<Check>& checks,
                        const Settings& settings) {
  std::string text = chats_text(seen) + "\n" + cli::render(lease_table(seen));
  text += fmt::format(
      "Clocks start when the broker stores the lease word. Slow motion: {} µs after each unit of "
      "work.\n\n",
      settings.slow_motion_us);
  for (const Check& check : checks) {
    text += fmt::format("{}  {}: {}\n", check.ok ? "ok    " : "FAILED", check.promise, check.seen);
  }
  return text;
}

wire::Json report_json(const Observation& seen, const std::vector<Check>& checks,
                       const Settings& settings) {
  wire::Json leases = wire::Json::array();
  for (const TenantResult& result : seen.results) {
    for (const LeaseId id : result.observed.leases) {
      if (const auto* lease = seen.lease(id)) leases.push_back(lease->to_json());
    }
  }
  return {{"ok", runner::all_ok(checks)},
          {"slow_motion_us", settings.slow_motion_us},
          {"leases", std::move(leases)},
          {"checks", runner::checks_json(checks)}};
}

}  // namespace leasehold::demo
