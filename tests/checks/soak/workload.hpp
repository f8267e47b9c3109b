/// The tenants of the soak; each prompt has a canary of its own.
#pragma once

#include <optional>
#include <vector>

#include "tests/checks/soak/canary.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// Half of the tenants' prompts begin with it.
inline constexpr const char* kPublishedText =
    "Once upon a time there was a little girl who lived in a small house near a big forest with "
    "her cat ";

struct TenantSpec {
  std::string name;
  std::string prompt;
  std::uint64_t seed = 0;  ///< Seed for sampling.
  std::uint32_t max_tokens = 0;
  /// The text outlives its process: the next one asks for it with the same request id.
  bool is_resumable = false;
  std::optional<std::int64_t> max_lifetime_ms;  ///< Its texts move to another lease in time.
  wire::Tier tier = wire::Tier::Standard;       ///< Of the others, leases are large.
  std::vector<std::int32_t> undisturbed;        ///< Filled in by run_undisturbed.
};

/// Memory of one extent.
struct ExtentShape {
  std::uint64_t bytes = 0;
  std::uint32_t blocks = 0;
};

struct Workload {
  std::vector<TenantSpec> tenants;
  /// The undisturbed texts of the tight tenant, by number; filled in by run_undisturbed.
  std::vector<std::vector<std::int32_t>> tight_texts;
  std::vector<Canary> canaries;  ///< Of the tenant with the same index.
  /// Filled in by run_undisturbed. Until then memory and blocks suffice for all.
  std::optional<ExtentShape> extent;
  /// Extents of a lease of the guaranteed tenant, and of the scavenger. Both leases are all memory,
  /// so that one ends when the other is granted. Either suffices for all other leases.
  std::uint32_t large_lease_extents = 0;
};

/// Errors: those of opening the model and reading its vocabulary.
Result<Workload> make_workload(const Settings& settings);

}  // namespace leasehold::soak
