#include "tools/monitor/broker_metrics.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/metrics/exposition.hpp"
#include "common/version.hpp"

namespace leasehold::monitor {
namespace {

using control::Json;
using metrics::Exposition;

constexpr metrics::Name kUp{"leasehold_broker_up", "1 when the broker answered"};

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

/// Durations are whole nanoseconds, so those below 2^power are at most 2^power - 1.
double bound_s(std::uint64_t power) {
  return (std::exp2(static_cast<double>(power)) - 1) * 1e-9;
}

metrics::HistogramCounts counts_of(const Json& histogram, std::uint64_t first_power) {
  metrics::HistogramCounts counts;
  std::uint64_t before = 0;
  for (const Json& entry : histogram.at("below")) {
    const auto below = entry.get<std::uint64_t>();
    counts.bounds_s.push_back(bound_s(first_power + counts.bounds_s.size()));
    counts.counts.push_back(below - before);
    before = below;
  }
  counts.counts.push_back(histogram.at("count").get<std::uint64_t>() - before);
  counts.sum_s = histogram.at("sum_ns").get<double>() * 1e-9;
  return counts;
}

void add_leases(Exposition& page, const wire::StatusView& status) {
  constexpr metrics::Name kLeases{
      "leasehold_broker_leases",
      "Leases; stuck ones are revoked for longer than the fence timeout"};
  page.gauge(kLeases, status.leases_live, {{"state", "live"}});
  page.gauge(kLeases, status.leases_revoked, {{"state", "revoked"}});
  page.gauge(kLeases, status.leases_stuck, {{"state", "stuck"}});
  page.counter({"leasehold_broker_leases_fenced_total", "Leases that were fenced"},
               number(status.leases_fenced));
  page.gauge({"leasehold_broker_oldest_revoked_seconds",
              "Age of the oldest lease that is revoked and not fenced; 0 without one"},
             static_cast<double>(status.oldest_revoked_ms) * 1e-3);
  constexpr metrics::Name kTenants{"leasehold_broker_tenants", "Tenants, admitted or live"};
  page.gauge(kTenants, status.tenants, {{"state", "admitted"}});
  page.gauge(kTenants, status.tenants_live, {{"state", "live"}});
  constexpr metrics::Name kWorkers{"leasehold_broker_workers",
                                   "Workers; lost ones get no lease, but may still run"};
  page.gauge(kWorkers, status.workers, {{"state", "serving"}});
  page.gauge(kWorkers, status.workers_lost, {{"state", "lost"}});
}

void add_memory(Exposition& page, const wire::StatusView& status) {
  const wire::SwapView& swap = status.swap;
  constexpr metrics::Name kCapacity{"leasehold_broker_capacity_bytes", "Memory to lend"};
  page.gauge(kCapacity, number(status.capacity_bytes), {{"pool", "kv"}});
  page.gauge(kCapacity, number(swap.capacity_bytes), {{"pool", "swap"}});
  constexpr metrics::Name kMemory{"leasehold_broker_memory_bytes",
                                  "Extents by state; the states of a pool add up to its capacity"};
  const auto add = [&](const char* pool, const char* state, std::uint64_t bytes) {
    page.gauge(kMemory, number(bytes), {{"pool", pool}, {"state", state}});
  };
  add("kv", "free", status.free_bytes);
  add("kv", "owned", status.owned_bytes);
  add("kv", "draining", status.draining_bytes);
  add("kv", "scrubbing", status.scrubbing_bytes);
  add("kv", "retained", status.retained_bytes);
  add("kv", "quarantined", status.quarantined_bytes);
  add("kv", "held", status.held_bytes);
  add("swap", "free", swap.free_bytes);
  add("swap", "owned", swap.owned_bytes);
  add("swap", "draining", swap.draining_bytes);
  add("swap", "scrubbing", swap.scrubbing_bytes);
  add("swap", "retained", swap.retained_bytes);
  add("swap", "quarantined", swap.quarantined_bytes);
  constexpr metrics::Name kUnproven{"leasehold_broker_unproven_bytes",
                                    "Part of that which lost workers may still access"};
  page.gauge(kUnproven, number(status.unproven_bytes), {{"pool", "kv"}});
  page.gauge(kUnproven, number(swap.unproven_bytes), {{"pool", "swap"}});
}

void add_faults(Exposition& page, const wire::StatusView& status) {
  page.counter({"leasehold_broker_tampered_slots_total",
                "Slots of the lease table that another process changed"},
               number(status.tampered));
  page.counter({"leasehold_broker_device_losses_total", "Device agents that have exited"},
               status.device_losses);
  page.gauge({"leasehold_broker_uptime_seconds", "Time since the broker started"},
             static_cast<double>(status.uptime_ms) * 1e-3);
}

void add_latencies(Exposition& page, const Json& read) {
  const auto first_power = read.at("first_power").get<std::uint64_t>();
  for (const auto& [reason, count] : read.at("revocations").items())
    page.counter({"leasehold_broker_revocations_total", "Revoked leases by reason"},
                 count.get<double>(), {{"reason", reason}});
  for (const auto& [clock, histogram] : read.at("clocks").items())
    page.histogram({"leasehold_broker_revocation_clock_seconds",
                    "From a revocation to the first refusal, the typed end, quiet, and reuse"},
                   counts_of(histogram, first_power), {{"clock", clock}});
  for (const auto& [mode, histogram] : read.at("rebinds").items())
    page.histogram({"leasehold_broker_rebind_latency_seconds",
                    "From a revocation to the admission under the next lease"},
                   counts_of(histogram, first_power), {{"mode", mode}});
}

}  // namespace

std::string broker_metrics(const BrokerState& state) {
  Exposition page;
  page.gauge(kUp, 1);
  page.gauge({"leasehold_broker_info", "The broker; always 1"}, 1,
             {{"device", state.status.device},
              {"device_state", state.status.device_state},
              {"isolation", state.status.isolation},
              {"version", std::string(version())}});
  add_leases(page, state.status);
  add_memory(page, state.status);
  add_faults(page, state.status);
  add_latencies(page, state.metrics);
  return page.text();
}

std::string broker_is_down() {
  Exposition page;
  page.gauge(kUp, 0);
  return page.text();
}

}  // namespace leasehold::monitor
