/// The system of the soak: a broker and workers that die, tenants of three tiers, a tenant whose
/// requests are swapped, and a published text.
#pragma once

#include "tests/checks/runner/system.hpp"
#include "tests/checks/soak/text_publisher.hpp"
#include "tests/checks/soak/tight_tenant.hpp"
#include "tests/checks/soak/workload.hpp"

namespace leasehold::soak {

/// Lifetime: the settings, the workload and the poller outlive the object. Threads: one.
class SoakSystem {
 public:
  SoakSystem(const Settings& settings, const Workload& workload, const runner::Poller& poller,
             std::filesystem::path directory);

  runner::System& system() { return system_; }
  runner::Record& record() { return system_.record(); }
  const TightTenant& tight_tenant() const { return tight_tenant_; }
  const TextPublisher& publisher() const { return publisher_; }

 private:
  runner::SystemConfig config(std::filesystem::path directory);
  Result<void> admit(BrokerView& broker);
  void reserve_memory();
  wire::TenantAdmit policy_of(const runner::TenantSpec& spec) const;
  runner::Tenant& tenant_of(wire::Tier tier);
  bool may_start(const runner::Tenant& tenant);
  void on_poll(bool starts);
  void sample_used_blocks();

  const Settings& settings_;
  const Workload& workload_;
  runner::System system_;
  TightTenant tight_tenant_;
  TextPublisher publisher_;
  /// True if the broker that runs has reserved the guaranteed tenant's memory.
  bool is_reserved_ = false;
  /// The scavenger's process that ran when the guaranteed tenant last started.
  std::uint64_t scavenger_process_ = 0;
  std::uint64_t polls_ = 0;
  runner::UsedBlocks used_of_broker_;  ///< The broker's last counts.
};

/// Timeout for all requests to end.
inline constexpr Duration kSettleTimeout = std::chrono::minutes(3);

/// Fills in each tenant's undisturbed text. Raises a short lifetime to at least the time that the
/// text took: if a lease always ends before its text is computed again, the tenant gives up.
/// Errors: those of System; SystemError if requests were swapped.
Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const runner::Poller& poller, const std::filesystem::path& directory);

}  // namespace leasehold::soak
