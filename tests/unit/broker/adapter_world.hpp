/// Two tenants, one worker, and helpers for adapters.
#pragma once

#include "tests/unit/broker/world.hpp"

namespace leasehold {

inline const std::string kDigest(64, 'a');
inline const std::string kOtherDigest(64, 'b');
inline constexpr std::uint64_t kExtentBytes = 2 * kMiB;

struct AdapterWorld : World {
  explicit AdapterWorld(const BrokerConfig& config = small_config()) : World(config) {
    for (const char* name : {"a", "b"}) {
      admit_tenant(name);
      (void)answer<wire::TenantPolicy>(
          call(kOperator,
               wire::TenantAdmit{
                   .tenant = {name}, .max_adapters = 2, .max_adapter_bytes = 4 * kExtentBytes}));
    }
  }

  AttachmentId worker = attach_worker("w0", kWorkerSocket);

  /// Registers an adapter of tenant `owner`; empty: shared. Returns its version.
  std::uint32_t add(const std::string& name, const std::string& owner = "a") {
    wire::AdapterAdd added{.adapter = {name}, .file = name + ".gguf", .shared = owner.empty()};
    if (!owner.empty()) added.tenant = TenantId{owner};
    return answer<wire::AdapterAdded>(call(kOperator, added)).version;
  }
  CallId remove(const std::string& name) {
    return call(kOperator, wire::AdapterRemove{.adapter = {name}});
  }

  struct Opening {
    std::string tenant = "a";
    std::uint32_t version = 1;
    std::string digest = kDigest;
    std::uint64_t size_bytes = kExtentBytes;
    ConnectionId connection = kWorkerSocket;
  };
  CallId open(const std::string& name, const Opening& opening) {
    return call(opening.connection, wire::AdapterOpen{.tenant = TenantId{opening.tenant},
                                                      .adapter = {name},
                                                      .version = opening.version,
                                                      .digest = opening.digest,
                                                      .size_bytes = opening.size_bytes});
  }
  CallId open(const std::string& name) { return open(name, Opening{}); }
  LeaseId opened(const std::string& name) { return opened(name, Opening{}); }
  LeaseId opened(const std::string& name, const Opening& opening) {
    return answer<wire::AdapterOpened>(open(name, opening)).lease;
  }
  LeaseId filled(const std::string& name) { return filled(name, Opening{}); }
  LeaseId filled(const std::string& name, const Opening& opening) {
    const LeaseId lease = opened(name, opening);
    (void)answer<wire::Empty>(call(kWorkerSocket, wire::AdapterFilled{.lease = lease}));
    return lease;
  }
  CallId close(LeaseId lease) { return call(kWorkerSocket, wire::AdapterClose{.lease = lease}); }
  RevokeReason reason(LeaseId lease) { return reason_of(record(lease).lease); }
};

}  // namespace leasehold
