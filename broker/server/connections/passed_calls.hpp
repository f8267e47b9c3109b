/// Passes operators' calls to workers, and bounds how long and how many wait for a reply.
///
/// Lifetime: `io` and `links` outlive it. Threads: the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <string>

#include "broker/server/connections/worker_links.hpp"
#include "common/clock.hpp"

namespace leasehold {

class PassedCalls {
 public:
  static constexpr Duration kTimeout = std::chrono::seconds(2);
  static constexpr std::uint32_t kMaxUnanswered = 64;  ///< Of one worker.

  PassedCalls(boost::asio::io_context& io, WorkerLinks& links) : io_(io), links_(links) {}

  /// Called with the worker's reply. After kTimeout it is called with TimedOut, and again if the
  /// worker replies later.
  using OnReply = std::function<void(Result<control::Payload>)>;
  /// Errors, passed to `on_reply`: BrokerLost for a worker without a connection, QueueFull when
  /// too many calls are unanswered.
  void pass(AttachmentId worker, const std::string& method, const control::Json& params,
            OnReply on_reply);

 private:
  void answered(AttachmentId worker);

  boost::asio::io_context& io_;
  WorkerLinks& links_;
  std::map<AttachmentId, std::uint32_t> unanswered_;  // no count is 0
};

}  // namespace leasehold
