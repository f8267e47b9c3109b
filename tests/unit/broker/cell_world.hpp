/// A host in a cell, as the broker sees it.
#pragma once

#include "broker/server/views/tenant_views.hpp"
#include "world.hpp"

namespace leasehold {

inline constexpr ConnectionId kAgent{30};
inline constexpr ConnectionId kLaterAgent{31};
inline const CellName kCell{"c1"};

/// One worker, an agent, the cell's tenant "c" and this host's tenant "a". The ceiling is in 20 s.
struct CellWorld : ServingWorld {
  CellWorld() {
    attach(kAgent);
    move_ceiling(std::chrono::seconds(20));
    admit({});
    forget_effects();
  }

  CallId attach(ConnectionId agent) { return call(agent, wire::CellAttach{.cell = kCell}); }
  CallId move_ceiling(Duration from_now, std::uint64_t incarnation = 1,
                      ConnectionId agent = kAgent) {
    return call(agent,
                wire::CellCeiling{.incarnation = incarnation,
                                  .ceiling_boottime_ns = (clock.now() + from_now).boottime_ns});
  }

  struct Part {
    std::uint32_t concurrent = 4;
    std::uint32_t blocks = 64;
    std::uint64_t revision = 1;
    std::uint64_t incarnation = 1;
    std::optional<std::uint32_t> tokens = std::nullopt;
    std::uint32_t first_credit_ms = 0;
  };
  CallId admit(const Part& part, ConnectionId agent = kAgent) {
    return call(agent, wire::CellAdmit{.policy = {.tenant = {"c"},
                                                  .max_concurrent = part.concurrent,
                                                  .max_blocks = part.blocks,
                                                  .rates = {.tokens_per_minute = part.tokens},
                                                  .cell = kCell},
                                       .incarnation = part.incarnation,
                                       .revision = part.revision,
                                       .first_credit_ms = part.first_credit_ms});
  }

  wire::CellPart part() { return view_of_tenant(state, {"c"}, clock.now()).at(0).part.value(); }
  const wire::TenantPolicy& policy() { return state.tenants.find({"c"})->policy; }
  /// The worker reports under the quota that it got last.
  void report_usage(std::uint32_t running, std::uint32_t waiting = 0, std::uint64_t admitted = 0) {
    const auto& share = state.tenants.find({"c"})->shares.at(worker);
    post(UsageReported{kWorkerSocket,
                       {.tenant = {"c"},
                        .revision = share.sent.revision,
                        .running = running,
                        .waiting = waiting,
                        .admitted = admitted}});
  }
  TimePoint deadline_in_table(LeaseId lease) { return table.deadline(lease.slot); }
};

}  // namespace leasehold
