/// The customers of the soak with adapters: 40 tenants, each with an adapter of its own, and the
/// system that serves them.
#pragma once

#include <filesystem>
#include <vector>

#include "tests/checks/runner/system.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// Memory of the leases, measured in the undisturbed run.
struct LeaseSizes {
  std::uint64_t extent_bytes = 0;
  std::uint32_t text_extents = 0;     ///< Of the largest lease of a text.
  std::uint32_t adapter_extents = 0;  ///< Of the largest adapter.
};

struct Customers {
  std::vector<runner::TenantSpec> specs;  ///< An adapter has the name of its tenant.
  std::filesystem::path adapters;         ///< The directory of their files.
  LeaseSizes sizes;  ///< Zero in the undisturbed run, where the memory suffices for all.
};

/// Writes an adapter of the model for each customer. Errors: those of reading the model and of
/// writing files.
Result<Customers> make_customers(const Settings& settings, const std::filesystem::path& directory);

/// A broker and a worker that die, and the customers. Adapters are registered once; later brokers
/// know them from the journal.
///
/// Lifetime: everything given outlives the object. Threads: one.
class CustomerSystem {
 public:
  CustomerSystem(const Settings& settings, const Customers& customers, const runner::Poller& poller,
                 std::filesystem::path directory);

  runner::System& system() { return system_; }

 private:
  runner::SystemConfig config(const Settings& settings, std::filesystem::path directory);
  Result<void> set_up(BrokerView& broker);

  const Customers& customers_;
  bool is_set_up_ = false;
  runner::System system_;
};

/// Registers the file of this customer's adapter. Errors: those of BrokerView.
Result<void> add_adapter(BrokerView& broker, const std::string& customer);

/// Computes each customer's text with ample memory, and measures the leases. Errors: those of
/// System.
Result<void> run_undisturbed(const Settings& settings, Customers& customers,
                             const runner::Poller& poller, const std::filesystem::path& directory);

}  // namespace leasehold::soak
