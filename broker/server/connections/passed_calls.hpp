/// Passes operators' calls to workers. Limits the number of calls that wait for a reply, and the
/// time that each waits.
///
/// Lifetime: `io` outlives it, and it outlives the peers. Threads: the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <string>

#include "broker/decide/event.hpp"
#include "common/clock.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class PassedCalls {
 public:
  static constexpr Duration kTimeout = std::chrono::seconds(2);
  static constexpr std::uint32_t kMaxUnanswered = 64;  ///< For each worker.

  explicit PassedCalls(boost::asio::io_context& io) : io_(io) {}

  /// Called with the worker's reply. After kTimeout it is called with TimedOut, and again if the
  /// worker replies later.
  using OnReply = std::function<void(Result<control::Payload>)>;
  struct Destination {
    AttachmentId worker;
    control::Peer* peer = nullptr;  ///< Null: the worker has no connection.
  };
  /// Errors, passed to `on_reply`: BrokerLost for a worker without a connection, QueueFull when
  /// too many calls are unanswered.
  void pass(const Destination& destination, const std::string& method, const control::Json& params,
            OnReply on_reply);

 private:
  void answered(AttachmentId worker);

  boost::asio::io_context& io_;
  std::map<AttachmentId, std::uint32_t> unanswered_;  // entries with a count of 0 are erased
};

}  // namespace leasehold
