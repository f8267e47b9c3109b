/// A system whose broker can be killed and restarted as a service manager would restart it.
#pragma once

#include <chrono>

#include "tests/checks/local_system/fd_store.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {

inline const TenantSpec kAnn{.tenant = "ann", .prompt = "Once upon a time"};
inline const TenantSpec kBob{.tenant = "bob", .prompt = "The little fox"};
inline const TenantSpec kCat{.tenant = "cat", .prompt = "One morning", .max_tokens = 200};
/// A text that takes longer than a restart.
inline const TenantSpec kEndless{.tenant = "cat", .prompt = "One morning", .max_tokens = 480};

/// Of the leases of ann, bob and cat.
inline constexpr std::chrono::milliseconds kTtl{20'000};

/// Descriptor store, state directory and system. Leases and grace outlast a restart on a slow
/// machine. The tenants ann, bob and cat are admitted.
struct Restartable {
  explicit Restartable(const std::string& broker_fault = {},
                       std::vector<std::string> more_of_broker = {},
                       const std::string& worker_fault = {});

  /// Kills the broker, runs `meanwhile`, starts a new broker.
  void restart_broker(const std::function<void()>& meanwhile = [] {});
  /// Waits until the broker has died at its fault point and starts it again without the fault.
  void restart_when_dead();

  TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  System system;
};

}  // namespace leasehold::testing
