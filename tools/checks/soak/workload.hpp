/// The tenants of the soak; each prompt starts with a canary of its own.
#pragma once

#include <optional>
#include <vector>

#include "tools/checks/soak/canary.hpp"
#include "tools/checks/soak/settings.hpp"

namespace leasehold::soak {

struct TenantSpec {
  std::string name;
  std::string prompt;
  std::uint64_t seed = 0;  ///< Seed for sampling.
  std::uint32_t max_tokens = 0;
  /// The text outlives its process: the next one asks for it with the same request id.
  bool is_resumable = false;
  std::optional<std::int64_t> max_lifetime_ms;  ///< Its texts move to another lease in time.
  std::vector<std::int32_t> undisturbed;        ///< Filled in by run_undisturbed.
};

struct Workload {
  std::vector<TenantSpec> tenants;
  /// The undisturbed texts of the tight tenant, by number; filled in by run_undisturbed. Until then
  /// its blocks are not limited.
  std::vector<std::vector<std::int32_t>> tight_texts;
  std::vector<Canary> canaries;  ///< Of the tenant with the same index.
};

/// Errors: those of opening the model and reading its vocabulary.
Result<Workload> make_workload(const Settings& settings);

}  // namespace leasehold::soak
