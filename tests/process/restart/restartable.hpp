/// A system whose broker can die and be started again, as a service manager would do it.
#pragma once

#include "tests/support/system.hpp"
#include "tools/local_system/fd_store.hpp"

namespace leasehold::testing {

/// A state directory that goes with the object.
class StateDirectory {
 public:
  StateDirectory();
  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline const TenantSpec kAnn{.tenant = "ann", .prompt = "Once upon a time"};
inline const TenantSpec kBob{.tenant = "bob", .prompt = "The little fox"};
inline const TenantSpec kCat{.tenant = "cat", .prompt = "One morning", .max_tokens = 200};
/// Whose text lasts longer than a restart.
inline const TenantSpec kEndless{.tenant = "cat", .prompt = "One morning", .max_tokens = 480};

/// Store, state directory and system; leases and grace last longer than a slow machine needs for a
/// restart. The tenants ann, bob and cat are admitted.
struct Restartable {
  explicit Restartable(const std::string& broker_fault = {},
                       std::vector<std::string> more_of_broker = {});

  /// SIGKILL, then whatever `meanwhile` does, then a new broker.
  void restart_broker(const std::function<void()>& meanwhile = [] {});
  /// Waits until a broker that was armed to die has died, and starts it again without the fault.
  void restart_when_dead();

  StateDirectory state;
  FdStore store;
  System system;
};

}  // namespace leasehold::testing
