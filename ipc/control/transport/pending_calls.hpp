/// The calls of one peer that wait for their reply. Internal to ipc/control.
///
/// Each handler is called once, unless this object is destroyed before. Threads: one.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <utility>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

class PendingCalls {
 public:
  std::uint64_t next_id() { return next_id_++; }

  /// `timeout` belongs to the call and is cancelled with it; null: the call has no timeout.
  void add(std::uint64_t id, Peer::ReplyHandler on_reply,
           std::unique_ptr<boost::asio::steady_timer> timeout) {
    calls_.emplace(id, Call{std::move(on_reply), std::move(timeout)});
  }

  /// Passes a result to its call, if the call still waits.
  void complete(std::uint64_t id, Result<Payload> result) {
    auto node = calls_.extract(id);
    if (node) node.mapped().on_reply(std::move(result));
  }

  /// Fails all calls. A handler may destroy this object, or add a call.
  void fail_all(const Error& why) {
    auto calls = std::exchange(calls_, {});
    for (auto& [id, call] : calls) call.on_reply(std::unexpected(why));
  }

 private:
  struct Call {
    Peer::ReplyHandler on_reply;
    std::unique_ptr<boost::asio::steady_timer> timeout;
  };

  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Call> calls_;
};

}  // namespace leasehold::control
