#include "tools/monitor/broker_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "common/cli/version.hpp"
#include "common/metrics/exposition.hpp"
#include "ipc/control/messages/tenant_counts.hpp"

namespace leasehold::monitor {
namespace {

using control::Json;
using metrics::Exposition;

constexpr metrics::Name kUp{"leasehold_broker_up", "1 when the broker answered"};

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

/// The inclusive bound of the durations below 2^power ns: durations are whole nanoseconds, so they
/// are at most 2^power - 1.
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
  constexpr metrics::Name kWorkers{
      "leasehold_broker_workers",
      "Workers; lost ones get no lease, but may still run; those out of "
      "service have lost their weights"};
  page.gauge(kWorkers, status.workers - std::min(status.workers, status.workers_out_of_service),
             {{"state", "serving"}});
  page.gauge(kWorkers, status.workers_out_of_service, {{"state", "out_of_service"}});
  page.gauge(kWorkers, status.workers_lost, {{"state", "lost"}});
  page.gauge({"leasehold_broker_workers_asleep",
              "Serving workers that have given their weights back until their next request, or "
              "restore them for one"},
             status.workers_asleep);
}

/// What this host has of the limits of the cell's tenants.
void add_parts(Exposition& page, const std::vector<wire::TenantView>& tenants) {
  std::uint64_t parts = 0, requests = 0, blocks = 0;
  for (const wire::TenantView& tenant : tenants) {
    if (!tenant.part || tenant.policy.max_concurrent == 0) continue;
    ++parts;
    requests += tenant.policy.max_concurrent;
    blocks += tenant.policy.max_blocks;
  }
  page.gauge({"leasehold_broker_cell_parts", "Tenants of the cell that this host may run"},
             number(parts));
  page.gauge({"leasehold_broker_cell_part_requests", "Requests in these parts"}, number(requests));
  page.gauge({"leasehold_broker_cell_part_blocks", "KV blocks in these parts"}, number(blocks));
}

void add_cell(Exposition& page, const BrokerState& state) {
  const wire::StatusView& status = state.status;
  if (!status.cell) return;
  const auto seconds = [](std::int64_t ms) { return static_cast<double>(ms) * 1e-3; };
  page.gauge({"leasehold_broker_cell_ceiling_seconds",
              "Time for which tenants of the cell may still run; 0 when they may not"},
             seconds(status.cell->ceiling_left_ms));
  page.gauge({"leasehold_broker_cell_ceiling_age_seconds", "Time since the ceiling last moved"},
             seconds(status.cell->ceiling_age_ms));
  page.gauge(
      {"leasehold_broker_cell_agent_connected", "1 while the agent of the cell is connected"},
      status.cell->has_agent ? 1 : 0);
  page.gauge({"leasehold_broker_cell_tenants", "Tenants that belong to the cell"},
             status.cell->tenants);
  page.gauge({"leasehold_broker_cell_incarnation",
              "Membership of this host in its cell; a later one has a greater number"},
             number(status.cell->incarnation));
  add_parts(page, state.tenants);
}

/// Samples of one metric must follow each other, so each metric is added for both pools at once.
void add_memory(Exposition& page, const wire::StatusView& status) {
  const auto for_both = [&](const metrics::Name& name, const auto& add_pool) {
    const auto add_to = [&](const char* pool) {
      return [&page, &name, pool](const char* state, std::uint64_t bytes) {
        metrics::Labels labels{{"pool", pool}};
        if (state != nullptr) labels.emplace_back("state", state);
        page.gauge(name, number(bytes), labels);
      };
    };
    add_pool(status, add_to("kv"));
    add_pool(status.swap, add_to("swap"));
  };
  for_both({"leasehold_broker_capacity_bytes", "Memory to lend"},
           [](const auto& pool, const auto& add) { add(nullptr, pool.capacity_bytes); });
  for_both({"leasehold_broker_memory_bytes",
            "Extents by state; the states of a pool add up to its capacity"},
           [](const auto& pool, const auto& add) {
             add("free", pool.free_bytes);
             add("owned", pool.owned_bytes);
             add("draining", pool.draining_bytes);
             add("scrubbing", pool.scrubbing_bytes);
             add("retained", pool.retained_bytes);
             add("quarantined", pool.quarantined_bytes);
             if constexpr (requires { pool.held_bytes; }) add("held", pool.held_bytes);
           });
  for_both({"leasehold_broker_unproven_bytes", "Part of that which lost workers may still access"},
           [](const auto& pool, const auto& add) { add(nullptr, pool.unproven_bytes); });
}

void add_faults(Exposition& page, const wire::StatusView& status) {
  page.counter({"leasehold_broker_tampered_slots_total",
                "Slots of the lease table that another process changed"},
               number(status.tampered));
  page.counter({"leasehold_broker_journal_faults_total",
                "Decisions that could not be written to the journal at once"},
               number(status.journal_faults));
  page.counter({"leasehold_broker_log_lines_dropped_total",
                "Lines of the broker's log that the reader of its stderr did not take"},
               number(status.log_lines_dropped));
  page.counter({"leasehold_broker_device_losses_total", "Device agents that have exited"},
               status.device_losses);
  page.gauge({"leasehold_broker_uptime_seconds", "Time since the broker started"},
             static_cast<double>(status.uptime_ms) * 1e-3);
}

void add_audit(Exposition& page, const BrokerState& state) {
  if (!state.audit) return;
  constexpr metrics::Name kLeases{
      "leasehold_broker_audited_leases",
      "Leases since the first, by what became of their memory according to the audit chain"};
  wire::LeaseCounts leases = state.audit->leases;
  for (int i = 0; i < wire::kErasureStateCount; ++i) {
    const auto each = static_cast<wire::ErasureState>(i);
    page.gauge(kLeases, number(wire::count_of(leases, each)),
               {{"state", std::string(wire::name(each))}});
  }
  page.counter({"leasehold_broker_audit_gaps_total",
                "Times that audit records about leases were written late, because the disk was "
                "full"},
               number(state.audit->gaps));
  page.gauge({"leasehold_broker_audit_records_waiting",
              "Audit records about leases that wait for disk space"},
             number(state.audit->waiting));
  page.gauge({"leasehold_broker_audit_key_unlinked",
              "1 while the key that signs the audit chain replaces a lost one"},
             state.audit->key_is_unlinked ? 1 : 0);
}

/// Adds a gauge per tenant under the same tenant names as the counters have. The sum of all other
/// tenants is "other".
template <class Count>
void add_tenant_gauge(Exposition& page, const metrics::Name& name, const BrokerState& state,
                      Count wire::TenantView::* value) {
  std::map<std::string, std::uint64_t> sums;
  for (const wire::TenantServed& each : state.served) sums[each.tenant.value] = 0;
  for (const wire::TenantView& tenant : state.tenants) {
    const auto named = sums.find(tenant.policy.tenant.value);
    (named == sums.end() ? sums[TenantCounts::kOther] : named->second) += tenant.*value;
  }
  for (const auto& [tenant, sum] : sums) page.gauge(name, number(sum), {{"tenant", tenant}});
}

void add_tenants(Exposition& page, const BrokerState& state) {
  const auto count = [&](const metrics::Name& name, std::uint64_t wire::TenantServed::* served) {
    for (const wire::TenantServed& each : state.served)
      page.counter(name, number(each.*served), {{"tenant", each.tenant.value}});
  };
  count({"leasehold_broker_tenant_tokens_total",
         "Tokens computed by all workers for the busiest tenants; the rest is tenant=\"other\""},
        &wire::TenantServed::tokens);
  count({"leasehold_broker_tenant_preemptions_total", "Preempted requests of the tenant"},
        &wire::TenantServed::preemptions);
  add_tenant_gauge(page, {"leasehold_broker_tenant_leases", "Live leases of the tenant"}, state,
                   &wire::TenantView::leases_live);
  add_tenant_gauge(page, {"leasehold_broker_tenant_blocks", "KV blocks charged to the tenant"},
                   state, &wire::TenantView::blocks_held);
  add_tenant_gauge(page,
                   {"leasehold_broker_tenant_adapter_leases",
                    "Leases on memory of the tenant's adapters that are not fenced"},
                   state, &wire::TenantView::adapter_leases);
  add_tenant_gauge(page,
                   {"leasehold_broker_tenant_adapter_bytes", "Memory of the tenant's adapters"},
                   state, &wire::TenantView::adapter_bytes);
}

/// `counts`: of `metrics.read`.
void add_adapters(Exposition& page, const wire::StatusView& status, const Json& counts) {
  constexpr metrics::Name kLeases{"leasehold_broker_adapter_leases",
                                  "Leases on memory of adapters, shared ones too"};
  page.gauge(kLeases, status.adapters_loaded, {{"state", "loaded"}});
  page.gauge(kLeases, status.adapters_loading, {{"state", "loading"}});
  page.gauge(kLeases, status.adapters_ending, {{"state", "ending"}});
  page.gauge({"leasehold_broker_adapter_bytes", "Memory of adapters, shared ones too"},
             number(status.adapter_bytes));
  page.counter({"leasehold_broker_adapter_loads_total", "Adapters that workers have loaded"},
               counts.at("loads").get<double>());
  page.counter({"leasehold_broker_adapter_evictions_total",
                "Adapters that left, or whose leases were revoked"},
               counts.at("evictions").get<double>());
  for (const auto& [code, count] : counts.at("refusals").items())
    page.counter({"leasehold_broker_adapter_refusals_total",
                  "Leases for adapters that were refused, by error"},
                 count.get<double>(), {{"code", code}});
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
  add_cell(page, state);
  add_memory(page, state.status);
  add_faults(page, state.status);
  add_audit(page, state);
  add_tenants(page, state);
  add_adapters(page, state.status, state.metrics.at("adapters"));
  add_latencies(page, state.metrics);
  return page.text();
}

std::string broker_is_down() {
  Exposition page;
  page.gauge(kUp, 0);
  return page.text();
}

std::string monitor_metrics(std::uint64_t log_lines_dropped) {
  Exposition page;
  page.counter({"leasehold_monitor_log_lines_dropped_total",
                "Lines of the monitor's log that the reader of its stderr did not take"},
               number(log_lines_dropped));
  return page.text();
}

}  // namespace leasehold::monitor
