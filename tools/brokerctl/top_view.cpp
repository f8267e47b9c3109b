#include "tools/brokerctl/top_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

using cli::bytes_text;
using cli::nanoseconds_text;
using cli::or_dash;

constexpr std::size_t kBarWidth = 20;
constexpr Duration kRecentStep = std::chrono::seconds(3);

std::string rate_text(std::optional<double> rate) {
  return rate ? fmt::format("{:.1f}", *rate) : "-";
}

std::optional<double> sum_of(const TopSample& now, const TopSample* before) {
  std::optional<double> sum;
  for (const wire::TenantView& tenant : now.tenants) {
    const auto rate = tokens_per_second(tenant, now, before);
    if (rate) sum = sum.value_or(0) + *rate;
  }
  return sum;
}

std::string bar(std::uint64_t part, std::uint64_t whole) {
  const std::size_t filled =
      whole == 0 ? 0
                 : static_cast<std::size_t>(part / std::max<std::uint64_t>(whole / kBarWidth, 1));
  const std::size_t shown = std::min(filled, kBarWidth);
  return "[" + std::string(shown, '#') + std::string(kBarWidth - shown, '.') + "]";
}

wire::LatencySummary rebinds_of(const wire::StatusView& status) {
  wire::LatencySummary all;
  for (const wire::ModeSummary& mode : status.rebinds) {
    const wire::LatencySummary& minute = mode.rebinds.last_minute;
    all.count += minute.count;
    all.p99_ns = std::max(all.p99_ns, minute.p99_ns);
    all.max_ns = std::max(all.max_ns, minute.max_ns);
  }
  return all;
}

std::string summary(const TopSample& now, const TopSample* before) {
  const wire::StatusView& status = now.status;
  const std::uint64_t used =
      status.capacity_bytes - std::min(status.capacity_bytes, status.free_bytes);
  std::string text =
      fmt::format("broker    up {}, device {} {}, isolation {}\n",
                  nanoseconds_text(status.uptime_ms * 1'000'000), printable(status.device),
                  printable(status.device_state), or_dash(printable(status.isolation)));
  text += fmt::format("memory    {} {} of {} in use; draining {}, scrubbing {}, quarantined {}\n",
                      bar(used, status.capacity_bytes), bytes_text(used),
                      bytes_text(status.capacity_bytes), bytes_text(status.draining_bytes),
                      bytes_text(status.scrubbing_bytes), bytes_text(status.quarantined_bytes));
  text +=
      fmt::format("leases    {} live, {} revoked, {} stuck, {} fenced in all\n", status.leases_live,
                  status.leases_revoked, status.leases_stuck, status.leases_fenced);
  if (status.adapters_loaded + status.adapters_loading > 0)
    text += fmt::format("adapters  {} loaded, {} loading, {}\n", status.adapters_loaded,
                        status.adapters_loading, bytes_text(status.adapter_bytes));
  const wire::LatencySummary rebinds = rebinds_of(status);
  text += fmt::format("rebinds   {} in the last minute", rebinds.count);
  if (rebinds.count > 0) {
    text += fmt::format(", p99 up to {}, at most {}", nanoseconds_text(rebinds.p99_ns),
                        nanoseconds_text(rebinds.max_ns));
  }
  return text + fmt::format("\ntokens/s  {}\n", rate_text(sum_of(now, before)));
}

cli::Table tenants_of(const TopSample& now, const TopSample* before) {
  std::vector<std::pair<double, const wire::TenantView*>> order;
  for (const wire::TenantView& tenant : now.tenants)
    order.emplace_back(-tokens_per_second(tenant, now, before).value_or(0), &tenant);
  std::ranges::stable_sort(order, {}, [](const auto& entry) { return entry.first; });
  cli::Table table{.columns = {{"TENANT"},
                               {"TIER"},
                               {"TOKENS/S", true},
                               {"LEASES", true},
                               {"KV BLOCKS", true},
                               {"OF", true},
                               {"CACHED", true},
                               {"PREEMPTED", true},
                               {"REBOUND/MIN", true},
                               {"DRAIN"}}};
  for (const auto& [rate, tenant] : order) {
    table.rows.push_back(
        {printable(tenant->policy.tenant.value), std::string(wire::name(tenant->policy.tier)),
         rate_text(tokens_per_second(*tenant, now, before)), fmt::format("{}", tenant->leases_live),
         fmt::format("{}", tenant->blocks_held), fmt::format("{}", tenant->policy.max_blocks),
         fmt::format("{}", tenant->served.cached_blocks),
         fmt::format("{}", tenant->served.preemptions),
         fmt::format("{}", tenant->rebinds.last_minute.count),
         tenant->draining ? "draining" : "-"});
  }
  return table;
}

/// The newest step of a worker; null if the worker computed none in the last seconds.
const wire::WorkerStep* recent_step(const wire::WorkerView& worker, const TopSample& now) {
  const auto found = std::ranges::find(now.steps, worker.worker, &wire::StepView::worker);
  if (found == now.steps.end() || worker.state == "gone") return nullptr;
  const bool is_recent = now.at - TimePoint{found->step.at_boottime_ns} < kRecentStep;
  return is_recent ? &found->step : nullptr;
}

/// An idle worker computes no steps, so its queue is not known, and is shown as "-".
cli::Table workers_of(const TopSample& now) {
  cli::Table table{.columns = {{"WORKER"},
                               {"STATE"},
                               {"RUNNING", true},
                               {"WAITING", true},
                               {"STEP", true},
                               {"LEASES", true},
                               {"DRAIN"},
                               {"MODEL"}}};
  for (const wire::WorkerView& worker : now.workers) {
    const wire::WorkerStep* step = recent_step(worker, now);
    const auto duration_ns =
        step == nullptr ? -1 : static_cast<std::int64_t>(step->duration_us) * 1000;
    table.rows.push_back({printable(worker.worker), or_dash(printable(worker.state)),
                          step == nullptr ? "-" : fmt::format("{}", step->running),
                          step == nullptr ? "-" : fmt::format("{}", step->waiting),
                          nanoseconds_text(duration_ns), fmt::format("{}", worker.leases),
                          printable(worker.drain), or_dash(printable(worker.model))});
  }
  return table;
}

/// The leases that have been revoked for the longest time come first: the broker has no proof yet
/// that their memory is quiet.
cli::Table revoked_of(const TopSample& now) {
  std::vector<const wire::LeaseView*> order;
  for (const wire::LeaseView& lease : now.revoked) order.push_back(&lease);
  std::ranges::stable_sort(order, {},
                           [](const auto* lease) { return lease->times.revoked_boottime_ns; });
  cli::Table table{
      .columns = {{"REVOKED LEASE"}, {"TENANT"}, {"WORKER"}, {"REASON"}, {"FOR", true}}};
  for (const wire::LeaseView* lease : order) {
    const std::int64_t age_ns = now.at.boottime_ns - lease->times.revoked_boottime_ns;
    table.rows.push_back({to_string(lease->lease), or_dash(printable(lease->tenant)),
                          or_dash(printable(lease->worker)), std::string(name(lease->reason)),
                          nanoseconds_text(std::max<std::int64_t>(age_ns, 0))});
  }
  return table;
}

}  // namespace

std::optional<double> tokens_per_second(const wire::TenantView& tenant, const TopSample& now,
                                        const TopSample* before) {
  if (before == nullptr || now.at <= before->at) return std::nullopt;
  if (now.status.uptime_ms < before->status.uptime_ms) return std::nullopt;  // another broker
  const auto same = [&](const wire::TenantView& one) {
    return one.policy.tenant == tenant.policy.tenant;
  };
  const auto found = std::ranges::find_if(before->tenants, same);
  const std::uint64_t then = found == before->tenants.end() ? 0 : found->served.tokens;
  // the tenant was removed and admitted again
  if (then > tenant.served.tokens) return std::nullopt;
  const double seconds = static_cast<double>((now.at - before->at).count()) / 1e9;
  return static_cast<double>(tenant.served.tokens - then) / seconds;
}

std::string top_text(const TopSample& now, const TopSample* before) {
  std::string text = summary(now, before) + "\n" + cli::render(tenants_of(now, before));
  text += "\n" + cli::render(workers_of(now));
  if (!now.revoked.empty()) text += "\n" + cli::render(revoked_of(now));
  return text;
}

wire::Json top_json(const TopSample& now, const TopSample* before) {
  using wire::Json;
  const auto number = [](std::optional<double> rate) { return rate ? Json(*rate) : Json(); };
  const auto array = [](const auto& views) {
    Json all = Json::array();
    for (const auto& view : views) all.push_back(view.to_json());
    return all;
  };
  Json tenants = array(now.tenants);
  for (std::size_t i = 0; i < now.tenants.size(); ++i)
    tenants[i]["tokens_per_second"] = number(tokens_per_second(now.tenants[i], now, before));
  return {{"tokens_per_second", number(sum_of(now, before))},
          {"status", now.status.to_json()},
          {"tenants", std::move(tenants)},
          {"workers", array(now.workers)},
          {"revoked", array(now.revoked)},
          {"steps", array(now.steps)}};
}

}  // namespace leasehold::brokerctl
