/// How long until there is service again after a SIGKILL, and until a revoke works again. Beside
/// them what a revocation costs the one tenant it takes, and what people do today instead: kill the
/// whole server and start it cold.
#pragma once

#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct DeathsConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t threads = 1;
  std::uint32_t tenants = 8;
};

/// From the SIGKILL (or the call of revoke), in ms; -1: not measured.
struct DeathTimes {
  double first_token_ms = -1;   ///< The first tenant hears a token again.
  double all_tenants_ms = -1;   ///< All of them do.
  double first_revoke_ms = -1;  ///< A revoke was called and its typed end read by the holder.
};

/// What a dead broker costs when its service manager keeps its descriptors.
struct BrokerDeath {
  double answers_ms = -1;       ///< SIGKILL → the next broker answers.
  double first_revoke_ms = -1;  ///< … → a revoke was called and its typed end read by the holder.
  double first_grant_ms = -1;   ///< … → that tenant reads a token under a fresh lease.
  double calm_gap_ms = -1;      ///< The longest pause of a stream before,
  double longest_gap_ms = -1;   ///< and from the SIGKILL to the first grant.
  std::uint64_t tokens_lost = 0;
  std::uint64_t streams_broken = 0;
};

/// The broker dies amid the streams and is started again at once; nobody asks the tenants to stop.
Result<BrokerDeath> measure_broker_death(const DeathsConfig& config);

/// The worker dies; its service manager (here: the benchmark) starts it again at once.
Result<DeathTimes> measure_worker_death(const DeathsConfig& config);

/// Broker and worker die and start cold: what a server without leases must do to take memory back.
Result<DeathTimes> measure_cold_restart(const DeathsConfig& config);

/// A tenant's process dies; its memory is leasable again after this many ms.
Result<double> measure_tenant_death_ms(const DeathsConfig& config);

/// One tenant of several is revoked and acquires again: until its next token. The others stream on.
Result<double> measure_rebind_ms(const DeathsConfig& config);

}  // namespace leasehold::bench
