/// Time from a SIGKILL until service and revocation work again.
///
/// For comparison: the cost of a revocation for the revoked tenant, and the cost without leases,
/// where the whole server is killed and started cold.
#pragma once

#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

/// In ms from the SIGKILL. -1: not measured.
struct DeathTimes {
  double first_token_ms = -1;   ///< The first tenant has read a token.
  double all_tenants_ms = -1;   ///< Every tenant has read a token.
  double first_revoke_ms = -1;  ///< A revoke was called and its holder read the typed end.
};

/// Cost of a broker's death when a service manager keeps its descriptors. In ms from the SIGKILL.
struct BrokerDeath {
  double answers_ms = -1;       ///< The next broker has answered.
  double first_revoke_ms = -1;  ///< A revoke was called and its holder read the typed end.
  double first_grant_ms = -1;   ///< That tenant has read a token under a new lease.
  double calm_gap_ms = -1;      ///< Longest gap between tokens before the SIGKILL.
  double longest_gap_ms = -1;   ///< Longest gap from the SIGKILL to the first grant.
  std::uint64_t tokens_lost = 0;
  std::uint64_t streams_broken = 0;
};

/// The broker dies while tenants stream, and is started again at once.
Result<BrokerDeath> measure_broker_death(const SystemConfig& config);

/// The worker dies, and is started again at once.
Result<DeathTimes> measure_worker_death(const SystemConfig& config);

/// Broker and worker die and start cold, as a server without leases must to reclaim memory.
Result<DeathTimes> measure_cold_restart(const SystemConfig& config);

/// Time in ms from the death of a tenant's process until its memory is free.
Result<double> measure_tenant_death_ms(const SystemConfig& config);

/// Time in ms from the revocation of one tenant of several until its next token.
Result<double> measure_rebind_ms(const SystemConfig& config);

}  // namespace leasehold::bench
