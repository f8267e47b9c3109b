/// The calls AgentMemory makes to the device agent and to the event loop.
///
/// The interface is this small so that the simulator can run AgentMemory over a simulated agent and
/// clock. A callback runs once and never inside the call that passed it. If this object is
/// destroyed first, the callback does not run. Threads: the io_context's thread.
#pragma once

#include <functional>
#include <string_view>

#include "common/clock.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

class AgentCalls {
 public:
  using Then = std::move_only_function<void()>;

  virtual ~AgentCalls() = default;

  /// Replies arrive in the order of the calls. Errors: those of the agent, ConnectionLost while no
  /// agent runs, TimedOut when the agent hangs.
  virtual void call(std::string_view method, control::Json params,
                    control::Peer::ReplyHandler on_reply) = 0;
  /// Runs `then` from the event loop, after the current handler returns.
  virtual void post(Then then) = 0;
  virtual void after(Duration pause, Then then) = 0;
};

}  // namespace leasehold
