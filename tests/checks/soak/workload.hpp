/// The tenants of the soak; each prompt has a canary of its own.
#pragma once

#include <optional>
#include <vector>

#include "tests/checks/runner/system.hpp"
#include "tests/checks/soak/canary.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// The published text. Half of the tenants' prompts begin with it.
inline constexpr const char* kPublishedText =
    "Once upon a time there was a little girl who lived in a small house near a big forest with "
    "her cat ";

/// Memory of one extent.
struct ExtentShape {
  std::uint64_t bytes = 0;
  std::uint32_t blocks = 0;
};

struct Workload {
  /// Tenants of other tiers than Standard have large leases.
  std::vector<runner::TenantSpec> tenants;
  /// The undisturbed texts of the tight tenant, by number; filled in by run_undisturbed.
  std::vector<std::vector<std::int32_t>> tight_texts;
  std::vector<Canary> canaries;  ///< The canary of the tenant with the same index.
  /// Filled in by run_undisturbed. Until then the memory suffices for all tenants.
  std::optional<ExtentShape> extent;
  /// Extents of a lease of the guaranteed tenant, and of the scavenger. Together the two leases
  /// fill the memory, so one must end when the other is granted beside other leases. Half of the
  /// memory suffices for all other leases.
  std::uint32_t large_lease_extents = 0;

  /// Blocks of a large lease; 0 in the undisturbed run, where nothing is reclaimed.
  std::uint32_t large_lease_blocks() const {
    return extent ? large_lease_extents * extent->blocks : 0;
  }
};

/// Errors: those of opening the model and reading its vocabulary.
Result<Workload> make_workload(const Settings& settings);

}  // namespace leasehold::soak
