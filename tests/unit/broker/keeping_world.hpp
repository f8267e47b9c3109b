/// A broker that keeps the memory of tenants whose worker died.
#pragma once

#include "tests/unit/broker/world.hpp"

namespace leasehold {

inline constexpr ConnectionId kSuccessorSocket{11};
inline constexpr ConnectionId kSecondHolder{3};

inline BrokerConfig keeping(std::uint64_t capacity_bytes = 32 * kMiB) {
  BrokerConfig config = small_config();
  config.timeouts.adopt_grace = std::chrono::seconds(10);
  config.capacity_bytes = capacity_bytes;
  return config;
}

/// Worker w0 has an identity, and tenant "a" holds a lease of two extents there.
struct KeepingWorld : World {
  explicit KeepingWorld(const BrokerConfig& config = keeping()) : World(config) {
    admit_tenant("a");
    admit_tenant("b");
    worker = attach("w0", kWorkerSocket, "same");
    lease = acquired("a", 16);
    extents = record(lease).extents;
    forget_effects();
  }
  AttachmentId attach(const std::string& name, ConnectionId connection,
                      const std::optional<std::string>& identity, std::uint32_t uid = 0) {
    const CallId attached = call(connection, wire::WorkerAttach{.worker = name}, uid);
    call(connection,
         wire::WorkerReady{.address = "/run/" + name,
                           .model = "model",
                           .kv_block_size_bytes = kTestBlockBytes,
                           .kv_identity = identity},
         uid);
    return std::get<WorkerDescriptors>(answers.at(attached)->descriptors).worker;
  }
  void lose_worker() { post(ConnectionClosed{kWorkerSocket}); }
  void kill_worker() {
    lose_worker();
    post(WorkerExited{exit_of(worker)});
  }
  CallId replace(const std::string& tenant = "a", ConnectionId holder = kHolder) {
    return call(holder, wire::LeaseAcquire{.tenant = {tenant}, .blocks = 8, .replaces = lease});
  }
  std::size_t in_state(ExtentState wanted) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        state.extents.records(),
        [wanted](const auto& entry) { return entry.second.state == wanted; }));
  }
  /// An acquire that waits, because no successor of the killed worker is there yet.
  CallId wait_for_successor() {
    kill_worker();
    return replace();
  }
  bool is_retained() const { return in_state(ExtentState::Retained) == 2; }
  /// The memory objects are closed, which follows their punch.
  bool is_scrubbed() const {
    return std::ranges::none_of(extents, [this](ExtentId id) { return objects.contains(id); });
  }

  AttachmentId worker;
  LeaseId lease;
  std::vector<ExtentId> extents;
};

}  // namespace leasehold
