/// The broker's truth, asked for over its control socket.
#pragma once

#include <string>
#include <vector>

#include "common/random.hpp"
#include "common/unique_fd.hpp"
#include "ipc/control/client.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold::demo {

/// Errors of every call: what the broker answered, ConnectionLost, MalformedMessage.
/// Threads: one.
class BrokerView {
 public:
  static Result<BrokerView> connect(const std::string& path);

  Result<wire::StatusView> status();
  Result<std::vector<wire::LeaseView>> leases();
  Result<std::vector<wire::ExtentView>> extents();
  Result<std::vector<wire::WorkerView>> workers();
  /// All events there are, oldest first.
  Result<std::vector<events::StampedEvent>> events();
  /// A read-only descriptor of one extent's memory; the broker gives it only with
  /// --allow-memory-check.
  Result<UniqueFd> open_extent(ExtentId extent);
  /// An operator's deed: tenant.admit, lease.revoke, lease.drain; the request id is minted.
  template <class Message>
  Result<void> command(Message message) {
    message.request_id = {mint_request_id()};
    TRY(ask(std::string(Message::kMethod), message.to_json()));
    return {};
  }

 private:
  explicit BrokerView(control::Client client) : client_(std::move(client)) {}
  Result<wire::Json> ask(const std::string& method);
  Result<wire::Json> ask(const std::string& method, wire::Json params);
  template <class View>
  Result<std::vector<View>> list(const std::string& method);

  control::Client client_;
};

}  // namespace leasehold::demo
