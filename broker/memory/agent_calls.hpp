/// What memory of a card needs of its agent and of the loop it is answered on, and no more: so the
/// simulator runs that very code over an agent and a clock of its own.
///
/// Whatever is handed over is called once, later, or never if this object ends first.
///
/// Threads: the loop's.
#pragma once

#include <functional>
#include <string_view>

#include "common/clock.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

class AgentCalls {
 public:
  using Then = std::move_only_function<void()>;

  virtual ~AgentCalls() = default;

  /// Answered in the order of the calls. Errors: the agent's, ConnectionLost while there is none,
  /// TimedOut from one that hangs.
  virtual void call(std::string_view method, control::Json params,
                    control::Peer::ReplyHandler on_reply) = 0;
  /// Once this turn of the loop is over.
  virtual void post(Then then) = 0;
  virtual void after(Duration pause, Then then) = 0;
};

}  // namespace leasehold
