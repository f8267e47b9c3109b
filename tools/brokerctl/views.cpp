#include "tools/brokerctl/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages/waits/lease_wait.hpp"

namespace leasehold::brokerctl {
namespace {

using cli::bytes_text;
using cli::nanoseconds_text;
using cli::or_dash;

std::string number(std::uint64_t value) {
  return fmt::format("{}", value);
}

std::string lease_text(const std::optional<LeaseId>& lease) {
  return lease ? to_string(*lease) : "-";
}

std::string state_text(const wire::LeaseView& lease) {
  const bool is_filling = lease.scope == wire::LeaseScope::Shared && lease.blocks == 0;
  if (is_filling && lease.state == LeaseState::Live) return "Filling";
  const bool draining = lease.state == LeaseState::Live && lease.drain_deadline_boottime_ns != 0;
  return draining ? "Live, draining" : std::string(name(lease.state));
}

/// If the worker stopped the lease before the revocation, the clocks that start at the revocation
/// do not exist.
std::string clock_text(const wire::LeaseView& lease, std::int64_t clock_ns) {
  const bool before_revocation = clock_ns < 0 && lease.times.worker_stopped_boottime_ns != 0;
  return before_revocation ? "before revocation" : nanoseconds_text(clock_ns);
}

std::string summary_text(const wire::LatencySummary& summary) {
  if (summary.count == 0) return "-";
  return fmt::format("{} / {} / {} of {}", nanoseconds_text(summary.p50_ns),
                     nanoseconds_text(summary.p99_ns), nanoseconds_text(summary.max_ns),
                     summary.count);
}

std::string value_text(const wire::Json& value) {
  return printable(value.is_string() ? value.get<std::string>() : value.dump());
}

constexpr std::int64_t kNs_per_ms = 1'000'000;

std::string ceiling_text(const wire::CellView& cell) {
  if (cell.ceiling_boottime_ns == std::numeric_limits<std::int64_t>::max()) return "none";
  return cell.ceiling_left_ms == 0 ? "passed" : nanoseconds_text(cell.ceiling_left_ms * kNs_per_ms);
}

void add_cell(cli::Table& table, const wire::CellView& cell) {
  table.rows.push_back({"cell", printable(cell.cell.value)});
  table.rows.push_back({"  agent", cell.has_agent ? "connected" : "not connected"});
  table.rows.push_back({"  incarnation", number(cell.incarnation)});
  table.rows.push_back({"  time to the ceiling", ceiling_text(cell)});
  table.rows.push_back(
      {"  age of the ceiling", nanoseconds_text(cell.ceiling_age_ms * kNs_per_ms)});
  table.rows.push_back({"  tenants", number(cell.tenants)});
}

}  // namespace

std::string time_text(const std::optional<std::int64_t>& unix_ms, const char* otherwise) {
  return unix_ms ? cli::utc_text(*unix_ms / 1000) : otherwise;
}

/// "2026-11-24T18:30Z", for a time that is known to the minute.
std::string minute_text(const std::optional<std::int64_t>& unix_ms, const char* otherwise) {
  std::string text = time_text(unix_ms, otherwise);
  if (unix_ms) text.erase(text.size() - 4, 3);  // the seconds of ":00Z"
  return text;
}

Result<cli::Table> status_table(const wire::Json& reply) {
  const auto status = TRY(client::parse_message<wire::StatusView>(reply));
  const auto in_use = TRY(client::parse_message<wire::HostMemoryInUse>(reply));
  cli::Table table{.columns = {{"WHAT"}, {"VALUE", true}}};
  auto add = [&](std::string what, std::string value) {
    table.rows.push_back({std::move(what), std::move(value)});
  };
  const auto add_states = [&](const auto& pool) {
    add("  free", bytes_text(pool.free_bytes));
    add("  owned", bytes_text(pool.owned_bytes));
    add("  draining", bytes_text(pool.draining_bytes));
    add("  scrubbing", bytes_text(pool.scrubbing_bytes));
    add("  retained", bytes_text(pool.retained_bytes));
    add("  quarantined", bytes_text(pool.quarantined_bytes));
  };
  add("capacity", bytes_text(status.capacity_bytes));
  add_states(status);
  add("  held for returning workers", bytes_text(status.held_bytes));
  add("held by lost workers (included above)", bytes_text(status.unproven_bytes));
  add("host memory with pages (of both pools)", bytes_text(in_use.touched_bytes));
  add("swap capacity", bytes_text(status.swap.capacity_bytes));
  add_states(status.swap);
  add("swap held by lost workers (included above)", bytes_text(status.swap.unproven_bytes));
  add("spill capacity", bytes_text(status.spill_capacity_bytes));
  add("  lent", bytes_text(status.spill_lent_bytes));
  add("leases live", number(status.leases_live));
  add("leases revoked, not yet fenced", number(status.leases_revoked));
  add("  stuck (longer than --fence-timeout-ms)", number(status.leases_stuck));
  add("  age of the oldest",
      status.leases_revoked == 0 ? "-" : nanoseconds_text(status.oldest_revoked_ms * 1'000'000));
  add("leases fenced in all", number(status.leases_fenced));
  add("workers", number(status.workers));
  add("workers lost (may still run)", number(status.workers_lost));
  if (status.workers_out_of_service > 0)
    add("workers out of service", number(status.workers_out_of_service));
  if (status.workers_asleep > 0) add("workers asleep", number(status.workers_asleep));
  if (status.adapters_loaded + status.adapters_loading + status.adapters_ending > 0) {
    add("adapters loaded", number(status.adapters_loaded));
    add("  loading", number(status.adapters_loading));
    add("  ending", number(status.adapters_ending));
    add("  memory", bytes_text(status.adapter_bytes));
  }
  add("tenants", number(status.tenants));
  add("  live", number(status.tenants_live));
  if (status.cell) add_cell(table, *status.cell);
  add("isolation", or_dash(printable(status.isolation)));
  add("table slots changed by others", number(status.tampered));
  add("decisions not journaled at once", number(status.journal_faults));
  add("log lines dropped", number(status.log_lines_dropped));
  add("device", printable(status.device));
  add("  card", or_dash(printable(status.device_uuid)));
  add("  state", printable(status.device_state));
  add("  device agents lost", number(status.device_losses));
  for (const wire::ClockSummary& clock : status.clocks) {
    add(clock.clock + " p50 / p99 / max", summary_text(clock.since_start));
    add("  in the last minute", summary_text(clock.last_minute));
  }
  for (const wire::ModeSummary& mode : status.rebinds) {
    add("rebinds by " + printable(mode.mode) + " p50 / p99 / max",
        summary_text(mode.rebinds.since_start));
    add("  in the last minute", summary_text(mode.rebinds.last_minute));
  }
  add("uptime", nanoseconds_text(status.uptime_ms * 1'000'000));
  return table;
}

namespace {

std::string limit_text(const auto& limit) {
  return limit ? number(*limit) : "-";
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::vector<cli::Column> tenant_columns() {
  return {{"TENANT"},
          {"CONCURRENT", true},
          {"MAX BLOCKS", true},
          {"RESERVED", true, true},
          {"WEIGHT", true},
          {"TIER"},
          {"TTL", true, true},
          {"MAX LIFETIME", true, true},
          {"REBINDS/MIN", true, true},
          {"REBIND BURST", true, true},
          {"TOKENS/MIN", true, true},
          {"REQUESTS/MIN", true, true},
          {"TOKENS/DAY", true, true},
          {"TOKENS TODAY", true, true},
          {"UID", true, true},
          {"LIVE LEASES", true},
          {"BLOCKS HELD", true},
          {"SWAP BLOCKS", true, true},
          {"CACHED", true},
          {"SERVED", true},
          {"HIT TOKENS", true},
          {"SHARED HIT BLOCKS", true, true},
          {"EVICTED", true},
          {"PREEMPTED", true},
          {"REBOUND", true},
          {"LAST MINUTE", true, true},
          {"DRAIN"}};
}

}  // namespace

cli::Table tenants_table(const std::vector<wire::TenantView>& tenants) {
  cli::Table table{.columns = tenant_columns()};
  std::uint64_t served_tokens = 0;
  for (const wire::TenantView& view : tenants) served_tokens += view.served.tokens;
  for (const wire::TenantView& view : tenants) {
    const wire::TenantPolicy& policy = view.policy;
    table.rows.push_back(
        {policy.tenant.value,
         number(policy.max_concurrent),
         number(policy.max_blocks),
         number(policy.reserved_blocks),
         number(policy.weight),
         std::string(wire::name(policy.tier)),
         nanoseconds_text(policy.ttl_ms * 1'000'000),
         policy.max_lifetime_ms ? nanoseconds_text(*policy.max_lifetime_ms * 1'000'000) : "-",
         number(policy.rebinds_per_minute),
         number(policy.rebind_burst),
         limit_text(policy.rates.tokens_per_minute),
         limit_text(policy.rates.requests_per_minute),
         limit_text(policy.rates.tokens_per_day),
         number(view.tokens_today),
         policy.uid ? number(*policy.uid) : "any",
         number(view.leases_live),
         number(view.blocks_held),
         number(view.swap_blocks_held),
         number(view.served.cached_blocks),
         share_text(view.served.tokens, served_tokens),
         number(view.served.hit_tokens),
         number(view.served.shared_hit_blocks),
         number(view.served.evicted_blocks),
         number(view.served.preemptions),
         number(view.rebinds.since_start.count),
         number(view.rebinds.last_minute.count),
         view.draining ? "draining" : "-"});
  }
  return table;
}

cli::Table leases_table(const std::vector<wire::LeaseView>& leases) {
  cli::Table table{.columns = {{"LEASE"},
                               {"SCOPE"},
                               {"TENANT"},
                               {"MODEL"},
                               {"PART"},
                               {"WORKER"},
                               {"STATE"},
                               {"REASON"},
                               {"PROOF"},
                               {"MEMORY", true},
                               {"SWAP", true, true},
                               {"BLOCKS", true, true},
                               {"EXTENTS", true, true},
                               {"QUARANTINED", true, true},
                               {"REPLACED BY"},
                               {"T_REFUSE", true},
                               {"T_ERROR", true},
                               {"T_QUIET", true},
                               {"T_REUSE", true}}};
  for (const wire::LeaseView& view : leases) {
    const bool has_reason = view.reason != RevokeReason::None;
    table.rows.push_back(
        {to_string(view.lease), std::string(wire::name(view.scope)),
         or_dash(printable(view.tenant)), or_dash(printable(view.model)),
         or_dash(printable(view.part)), or_dash(printable(view.worker)), state_text(view),
         has_reason ? std::string(name(view.reason)) : "-", or_dash(printable(view.proof)),
         bytes_text(view.size_bytes), bytes_text(view.swap_bytes), number(view.blocks),
         number(view.extents), number(view.quarantined_extents), lease_text(view.replaced_by),
         clock_text(view, view.clocks.refuse_ns), clock_text(view, view.clocks.error_ns),
         nanoseconds_text(view.clocks.quiet_ns), nanoseconds_text(view.clocks.reuse_ns)});
  }
  return table;
}

cli::Table keys_table(const std::vector<wire::KeyView>& keys) {
  cli::Table table{.columns = {{"KEY"},
                               {"TENANT"},
                               {"NAME"},
                               {"EXPIRES"},
                               {"LAST USE"},
                               {"TOKENS TODAY", true},
                               {"CREATED", false, true},
                               {"CONCURRENT", true, true},
                               {"TOKENS/MIN", true, true},
                               {"REQUESTS/MIN", true, true},
                               {"TOKENS/DAY", true, true}}};
  for (const wire::KeyView& key : keys) {
    const wire::RateLimits& rates = key.limits.rates;
    table.rows.push_back(
        {key.key.value, key.tenant.value, or_dash(printable(key.name)),
         time_text(key.expires_unix_ms, "never") + (key.expired ? ", expired" : ""),
         minute_text(key.last_used_unix_ms, "never"), number(key.tokens_today),
         time_text(key.created_unix_ms, "-"), limit_text(key.limits.max_concurrent),
         limit_text(rates.tokens_per_minute), limit_text(rates.requests_per_minute),
         limit_text(rates.tokens_per_day)});
  }
  return table;
}

cli::Table prefixes_table(const std::vector<wire::LeaseView>& shared_leases) {
  cli::Table table{.columns = {{"LEASE"},
                               {"NAME"},
                               {"ADAPTER"},
                               {"WORKER"},
                               {"STATE"},
                               {"BLOCKS", true},
                               {"MEMORY", true}}};
  for (const wire::LeaseView& view : shared_leases) {
    table.rows.push_back({to_string(view.lease), or_dash(printable(view.part)),
                          or_dash(printable(view.model)), or_dash(printable(view.worker)),
                          state_text(view), view.blocks == 0 ? "-" : number(view.blocks),
                          bytes_text(view.size_bytes)});
  }
  return table;
}

cli::Table extents_table(const std::vector<wire::ExtentView>& extents) {
  cli::Table table{
      .columns = {
          {"EXTENT", true}, {"POOL"}, {"STATE"}, {"LEASE"}, {"SIZE", true}, {"INODE", true, true}}};
  for (const wire::ExtentView& view : extents) {
    table.rows.push_back({number(view.extent.value), std::string(wire::name(view.pool)),
                          or_dash(printable(view.state)), lease_text(view.lease),
                          bytes_text(view.size_bytes), number(view.inode)});
  }
  return table;
}

cli::Table quarantine_table(const std::vector<wire::QuarantineView>& quarantined) {
  cli::Table table{
      .columns = {
          {"MEMORY"}, {"LEASE"}, {"WORKER"}, {"SINCE BOOT (S)", true}, {"SIZE", true}, {"WHY"}}};
  for (const wire::QuarantineView& view : quarantined) {
    const std::string memory = view.extent ? fmt::format("extent:{}", view.extent->value)
                                           : fmt::format("region:{}", view.region->value);
    const double seconds = static_cast<double>(view.since_boottime_ns) / 1e9;
    table.rows.push_back({memory, lease_text(view.lease), or_dash(printable(view.worker)),
                          fmt::format("{:.6f}", seconds), bytes_text(view.size_bytes),
                          or_dash(printable(view.why))});
  }
  return table;
}

cli::Table operator_actions_table(const std::vector<wire::OperatorActionView>& actions) {
  cli::Table table{
      .columns = {{"TIME"}, {"UID", true}, {"ACTION"}, {"OBJECT"}, {"DONE"}, {"REASON"}}};
  for (const wire::OperatorActionView& view : actions) {
    table.rows.push_back({cli::utc_text(view.at_unix_s), number(view.uid), printable(view.action),
                          printable(view.object), view.done ? "yes" : "refused",
                          or_dash(printable(view.reason))});
  }
  return table;
}

cli::Table workers_table(const std::vector<wire::WorkerView>& workers) {
  const bool all_serve = std::ranges::none_of(
      workers, [](const wire::WorkerView& view) { return view.out_of_service.has_value(); });
  cli::Table table{.columns = {{"WORKER"},
                               {"ID", true, true},
                               {"PID", true},
                               {"STATE"},
                               {"DRAIN"},
                               {"REPLACED BY"},
                               {"MODEL"},
                               {"ARITHMETIC", false, true},
                               {"TEXT IDENTITY", false, true},
                               {"CONTEXT", true, true},
                               {"LEASES", true},
                               {"REVOCATIONS", true, true},
                               {"ADDRESS"},
                               {"OUT OF SERVICE BECAUSE", false, all_serve}}};
  for (const wire::WorkerView& view : workers) {
    table.rows.push_back({printable(view.worker), number(view.id.value),
                          fmt::format("{}", view.pid), or_dash(printable(view.state)),
                          printable(view.drain), or_dash(printable(view.replaced_by.value_or(""))),
                          or_dash(printable(view.model)), or_dash(view.arithmetic),
                          or_dash(view.text_identity ? to_string(*view.text_identity) : ""),
                          or_dash(view.max_context == 0 ? "" : number(view.max_context)),
                          number(view.leases), number(view.revocations),
                          or_dash(printable(view.address)),
                          or_dash(printable(view.out_of_service.value_or("")))});
  }
  return table;
}

cli::Table replaced_table(const wire::WorkerView& view) {
  return {.columns =
              {{"WORKER"}, {"REPLACED BY"}, {"MOVED", true}, {"ENDED", true}, {"MAY BE STOPPED"}},
          .rows = {{printable(view.worker), or_dash(printable(view.replaced_by.value_or(""))),
                    number(view.leases_moved), number(view.leases_ended),
                    view.state == "gone" ? "gone" : fmt::format("process {}", view.pid)}}};
}

std::string event_line(const wire::Json& event) {
  const auto sequence = event.value("sequence", wire::Json());
  const auto at = event.value("at_boottime_ns", wire::Json());
  const double seconds =
      at.is_number_integer() ? static_cast<double>(at.get<std::int64_t>()) / 1e9 : 0.0;
  std::string line = fmt::format("{:>6}  {:.6f}  {:<20}", value_text(sequence), seconds,
                                 value_text(event.value("event", wire::Json("?"))));
  for (const auto& [key, value] : event.items()) {
    if (key == "sequence" || key == "at_boottime_ns" || key == "event") continue;
    line += fmt::format(" {}={}", printable(key), value_text(value));
  }
  return line;
}

}  // namespace leasehold::brokerctl
