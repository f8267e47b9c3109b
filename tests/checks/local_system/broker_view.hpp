/// Queries a broker over its control socket, as brokerctl does: for tests, demos and monitors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "common/random.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/client.hpp"

namespace leasehold {

/// One connection; each call waits for its reply. Queries change nothing.
///
/// Lifetime: owns the connection, which closes with it. Threads: one at a time.
/// Errors of every call: the broker's refusal with its own code; ConnectionLost; TimedOut;
/// MalformedMessage for a reply that does not fit. After ConnectionLost, connect again.
class BrokerView {
 public:
  /// Connects to the socket at `path`. Errors: FileNotFound, ConnectionRefused, PermissionDenied.
  static Result<BrokerView> connect(const std::string& path);

  /// Memory by state and numbers of leases, workers and tenants.
  Result<wire::StatusView> status();
  /// Every lease slot that was ever used, ordered by slot.
  Result<std::vector<wire::LeaseView>> leases();
  /// The live lease of an adapter on some worker, by the adapter's name; nothing if it has none.
  Result<std::optional<LeaseId>> live_adapter_lease(const std::string& adapter);
  /// Every extent, ordered by id.
  Result<std::vector<wire::ExtentView>> extents();
  /// Every worker the broker knows.
  Result<std::vector<wire::WorkerView>> workers();
  /// Every tenant, ordered by id.
  Result<std::vector<wire::TenantView>> tenants();
  /// The events that the broker still has, oldest first. The broker keeps a bounded number.
  Result<std::vector<events::StampedEvent>> events();
  /// A read-only descriptor of one extent's memory, owned by the caller. Refused unless the broker
  /// runs with --allow-memory-check.
  Result<UniqueFd> open_extent(ExtentId extent);
  /// Sends an operator action (tenant.admit, lease.revoke, lease.drain) with a new request id.
  template <class Message>
  Result<void> command(Message message) {
    message.request_id = {mint_request_id()};
    TRY(call(std::string(Message::kMethod), message.to_json()));
    return {};
  }

 private:
  explicit BrokerView(control::Client client) : client_(std::move(client)) {}
  Result<wire::Json> call(const std::string& method, wire::Json params);

  control::Client client_;
};

}  // namespace leasehold
