/// Tenants that stream one text after another, and continue it after a revocation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/checks/local_system/program_starter.hpp"
#include "tests/checks/soak/hostile/record.hpp"
#include "tests/checks/soak/hostile/settings.hpp"
#include "tests/checks/soak/hostile/users.hpp"

namespace leasehold::soak {

/// Lifetime: the settings and the starter outlive it; processes end with it. Threads: one.
class HonestTenants {
 public:
  HonestTenants(const HostileSettings& settings, const ProgramStarter& programs,
                const Users& users);

  std::vector<std::string> names() const;
  std::optional<uid_t> user(std::size_t tenant) const {
    return users_->honest(static_cast<std::uint32_t>(tenant));
  }

  /// Starts a process for each tenant that has none. Errors: those of ProgramStarter.
  Result<void> start_missing();
  /// The outputs to wait for.
  std::vector<int> outputs() const;
  /// Reads what has arrived, and adds texts that have ended to `texts`. Errors: MalformedMessage,
  /// SystemError.
  Result<void> read(std::vector<TenantInstance>& texts);
  bool any_running() const;
  /// Keeps the texts as those that later ones must equal. Precondition: one of each tenant,
  /// complete.
  void keep_undisturbed(const std::vector<TenantInstance>& texts);

  /// The leases of tenants that are in the middle of a text.
  std::vector<LeaseId> leases_mid_text() const;

 private:
  struct Tenant {
    std::string name, prompt;
    std::optional<Child> process;
    demo::LineBuffer lines;
    demo::TenantRecord record;
    std::vector<std::int32_t> undisturbed;
  };
  Result<void> start(std::size_t index);

  const HostileSettings* settings_;
  const ProgramStarter* programs_;
  const Users* users_;
  std::vector<Tenant> tenants_;
};

}  // namespace leasehold::soak
