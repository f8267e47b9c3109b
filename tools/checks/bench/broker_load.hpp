/// Load on the broker alone: many leases revoked by one command, and leases per second.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

/// Observed by a thread that polls the words in the lease table.
struct MassRound {
  double flips_us = 0;   ///< First word Revoked → last word Revoked.
  double fenced_ms = 0;  ///< First word Revoked → last word Fenced.
  double free_ms = 0;    ///< First word Revoked → all memory scrubbed and free.
  double answer_ms = 0;  ///< The operator's call → its reply.
};
Result<std::vector<MassRound>> measure_mass_revocation(const std::string& bin_dir,
                                                       std::uint32_t leases);

/// acquire → release → fence → scrub → free, one extent of 2 MiB per lease. The time ends when all
/// memory is free.
Result<double> measure_cycles_per_second(const std::string& bin_dir, std::uint32_t cycles);

}  // namespace leasehold::bench
