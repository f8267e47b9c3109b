// The text of a broker's metrics, from known answers.
#include "tools/monitor/broker_metrics.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::monitor;
using control::Json;

namespace {

BrokerState known_state() {
  BrokerState state;
  state.status.capacity_bytes = 100;
  state.status.free_bytes = 60;
  state.status.owned_bytes = 40;
  state.status.swap.capacity_bytes = 7;
  state.status.leases_live = 3;
  state.status.leases_stuck = 1;
  state.status.oldest_revoked_ms = 1500;
  state.status.workers = 4;
  state.status.workers_lost = 2;
  state.status.workers_out_of_service = 1;
  state.status.workers_asleep = 1;
  state.status.tenants_live = 5;
  state.status.journal_faults = 6;
  state.status.log_lines_dropped = 8;
  // Two durations below 1024 ns, one below 2048 ns, one longer.
  const Json histogram{{"below", {2, 3}}, {"count", 4}, {"sum_ns", 5'000'000'000}};
  state.metrics =
      Json{{"first_power", 10},
           {"revocations", {{"operator", 9}}},
           {"clocks", {{"t_quiet", histogram}}},
           {"rebinds", {{"reprefill", histogram}}},
           {"adapters", {{"loads", 3}, {"evictions", 2}, {"refusals", {{"QuotaAdapters", 4}}}}}};
  return state;
}

}  // namespace

TEST_CASE("broker metrics: states, memory and reasons are those of the broker's answers") {
  const std::string text = broker_metrics(known_state());
  for (const char* line :
       {"leasehold_broker_up 1\n", "leasehold_broker_leases{state=\"live\"} 3\n",
        "leasehold_broker_leases{state=\"stuck\"} 1\n",
        "leasehold_broker_oldest_revoked_seconds 1.5\n",
        "leasehold_broker_memory_bytes{pool=\"kv\",state=\"owned\"} 40\n",
        "leasehold_broker_capacity_bytes{pool=\"swap\"} 7\n",
        "leasehold_broker_workers{state=\"lost\"} 2\n",
        "leasehold_broker_workers{state=\"serving\"} 3\n",
        "leasehold_broker_workers{state=\"out_of_service\"} 1\n",
        "leasehold_broker_workers_asleep 1\n", "leasehold_broker_tenants{state=\"live\"} 5\n",
        "leasehold_broker_capacity_bytes{pool=\"kv\"} 100\n",
        "leasehold_broker_journal_faults_total 6\n", "leasehold_broker_log_lines_dropped_total 8\n",
        "leasehold_broker_revocations_total{reason=\"operator\"} 9\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("broker metrics: the ceiling of a cell is shown once an agent has attached") {
  BrokerState state = known_state();
  CHECK_THAT(broker_metrics(state), !Catch::Contains("leasehold_broker_cell"));
  state.status.cell = {.cell = {"c1"},
                       .has_agent = true,
                       .incarnation = 17,
                       .ceiling_age_ms = 1'500,
                       .ceiling_left_ms = 28'250,
                       .tenants = 2};
  wire::TenantView tenant;
  tenant.policy.max_blocks = 30;
  for (const auto& [name, requests] : {std::pair("on", 3u), std::pair("returned", 0u)}) {
    tenant.policy.tenant = {name};
    tenant.policy.max_concurrent = requests;
    tenant.part = wire::CellPart{.incarnation = 17, .revision = 1};
    state.tenants.push_back(tenant);
  }
  const std::string text = broker_metrics(state);
  for (const char* line :
       {"leasehold_broker_cell_ceiling_seconds 28.25\n",
        "leasehold_broker_cell_ceiling_age_seconds 1.5\n",
        "leasehold_broker_cell_agent_connected 1\n", "leasehold_broker_cell_tenants 2\n",
        "leasehold_broker_cell_incarnation 17\n", "leasehold_broker_cell_parts 1\n",
        "leasehold_broker_cell_part_requests 3\n", "leasehold_broker_cell_part_blocks 30\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("broker metrics: adapters are counted by state, and refusals by error") {
  BrokerState state = known_state();
  state.status.adapters_loaded = 2;
  state.status.adapters_ending = 1;
  state.status.adapter_bytes = 30;
  const std::string text = broker_metrics(state);
  for (const char* line :
       {"leasehold_broker_adapter_leases{state=\"loaded\"} 2\n",
        "leasehold_broker_adapter_leases{state=\"loading\"} 0\n",
        "leasehold_broker_adapter_leases{state=\"ending\"} 1\n",
        "leasehold_broker_adapter_bytes 30\n", "leasehold_broker_adapter_loads_total 3\n",
        "leasehold_broker_adapter_evictions_total 2\n",
        "leasehold_broker_adapter_refusals_total{code=\"QuotaAdapters\"} 4\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE(
    "broker metrics: a broker with an audit chain counts leases by the fate of their memory") {
  BrokerState state = known_state();
  CHECK_THAT(broker_metrics(state), !Catch::Contains("audit"));
  state.audit = {.leases = {.granted = 15, .open = 1, .quarantined = 2, .held = 4, .erased = 8},
                 .gaps = 3,
                 .waiting = 5,
                 .key_is_unlinked = true};
  const std::string text = broker_metrics(state);
  for (const char* line :
       {"leasehold_broker_audited_leases{state=\"open\"} 1\n",
        "leasehold_broker_audited_leases{state=\"quarantined\"} 2\n",
        "leasehold_broker_audited_leases{state=\"held\"} 4\n",
        "leasehold_broker_audited_leases{state=\"erased\"} 8\n",
        "leasehold_broker_audit_gaps_total 3\n", "leasehold_broker_audit_records_waiting 5\n",
        "leasehold_broker_audit_key_unlinked 1\n"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("broker metrics: a histogram has the broker's counts below each power of two") {
  const std::string text = broker_metrics(known_state());
  const std::string clock = "leasehold_broker_revocation_clock_seconds";
  CHECK_THAT(text, Catch::Contains(clock + "_count{clock=\"t_quiet\"} 4\n"));
  CHECK_THAT(text, Catch::Contains(clock + "_sum{clock=\"t_quiet\"} 5\n"));
  CHECK_THAT(text, Catch::Contains(clock + "_bucket{clock=\"t_quiet\",le=\"1.023"));
  CHECK_THAT(text, Catch::Contains(clock + "_bucket{clock=\"t_quiet\",le=\"+Inf\"} 4\n"));
  const auto first = text.find(clock + "_bucket{clock=\"t_quiet\"");
  CHECK(text.substr(text.find("} ", first), 3) == "} 2");
  CHECK_THAT(text, Catch::Contains("leasehold_broker_rebind_latency_seconds_count"
                                   "{mode=\"reprefill\"} 4\n"));
}

TEST_CASE("broker metrics: an answer of another shape is an error, and not a page") {
  BrokerState state = known_state();
  state.metrics.erase("clocks");
  CHECK_THROWS(broker_metrics(state));
}

TEST_CASE("broker metrics: each pool has its states, and only the KV pool has held memory") {
  BrokerState state = known_state();
  state.status.held_bytes = 11;
  state.status.swap.unproven_bytes = 12;
  const std::string text = broker_metrics(state);
  CHECK_THAT(text,
             Catch::Contains("leasehold_broker_memory_bytes{pool=\"kv\",state=\"held\"} 11\n"));
  CHECK_FALSE(text.contains("{pool=\"swap\",state=\"held\"}"));
  CHECK_THAT(text,
             Catch::Contains("leasehold_broker_memory_bytes{pool=\"swap\",state=\"owned\"} 0\n"));
  CHECK_THAT(text, Catch::Contains("leasehold_broker_unproven_bytes{pool=\"swap\"} 12\n"));
}

TEST_CASE("broker metrics: tenants without a name of their own are added up as other") {
  BrokerState state = known_state();
  for (const std::string name : {"ann", "ben", "eve"}) {
    auto& tenant = state.tenants.emplace_back();
    tenant.policy.tenant = {name};
    tenant.leases_live = name == "ann" ? 1 : 10;
    tenant.blocks_held = 100;
    tenant.adapter_leases = 1;
    tenant.adapter_bytes = 50;
  }
  state.served = {{.tenant = {"ann"}, .tokens = 7}, {.tenant = {"other"}, .tokens = 9}};
  const std::string text = broker_metrics(state);
  for (const char* line : {"leasehold_broker_tenant_tokens_total{tenant=\"ann\"} 7\n",
                           "leasehold_broker_tenant_tokens_total{tenant=\"other\"} 9\n",
                           "leasehold_broker_tenant_leases{tenant=\"ann\"} 1\n",
                           "leasehold_broker_tenant_leases{tenant=\"other\"} 20\n",
                           "leasehold_broker_tenant_blocks{tenant=\"other\"} 200\n",
                           "leasehold_broker_tenant_adapter_leases{tenant=\"ann\"} 1\n",
                           "leasehold_broker_tenant_adapter_bytes{tenant=\"other\"} 100\n"})
    CHECK_THAT(text, Catch::Contains(line));
  CHECK_FALSE(text.contains("eve"));
}
