/// Reports to the engine when clients have read the log probabilities of their prompts, so that a
/// prompt is not computed faster than its client reads.
///
/// Positions count as taken while the client's connection has at most kMaxQueuedBytes of unread
/// output. A client that leaves more than that unread for kReadTimeout is reported as stalled: its
/// request holds memory while it waits.
///
/// Threads: that of the tenants' sockets. Lifetime: the io_context and the clock outlive the
/// object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "common/clock.hpp"
#include "common/ids.hpp"

namespace leasehold {

class LogprobPacer {
 public:
  static constexpr std::size_t kMaxQueuedBytes = 64 << 10;
  static constexpr Duration kReadTimeout = std::chrono::seconds(10);

  struct Handlers {
    /// The unread bytes of the request's connection; nothing once the request has ended.
    std::function<std::optional<std::size_t>(const RequestId& engine_request_id)> unread_bytes;
    std::function<void(const RequestId& engine_request_id, std::uint32_t positions)> on_taken;
    std::function<void(const RequestId& engine_request_id)> on_stalled;
  };

  LogprobPacer(boost::asio::io_context& io, const Clock& clock, Handlers handlers)
      : clock_(&clock), handlers_(std::move(handlers)), timer_(io) {}

  /// Call after the positions were written to the connection.
  void sent(const RequestId& engine_request_id, std::uint32_t positions);
  /// Checks the connections again. Called by a timer while positions are not taken.
  void check();

 private:
  struct Untaken {
    std::uint32_t positions = 0;
    TimePoint since;
  };
  enum class Reading : std::uint8_t { Done, Waits, Stalled };
  Reading reading_of(const RequestId& engine_request_id, const Untaken& untaken) const;
  void check_later();

  const Clock* clock_;
  Handlers handlers_;
  boost::asio::steady_timer timer_;
  bool is_waiting_ = false;
  std::map<RequestId, Untaken> untaken_;  // by engine_request_id
};

}  // namespace leasehold
