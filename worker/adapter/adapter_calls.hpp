/// A worker's calls to its broker about adapters. Answers arrive on the engine's thread, as
/// commands of its loop.
///
/// Lifetime: everything in Dependencies outlives it. Threads: any.
#pragma once

#include <functional>
#include <string>

#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"
#include "worker/adapter/adapter_actions.hpp"
#include "worker/engine/engine_loop.hpp"

namespace leasehold {

class AdapterCalls {
 public:
  /// Calls the broker and calls back on any thread (BrokerLink::call_async).
  using Call = std::function<void(const std::string& method, control::Payload params,
                                  control::Peer::ReplyHandler on_reply, Duration timeout)>;
  template <class T>
  using Then = std::move_only_function<void(Result<T>)>;

  AdapterCalls(Call call, EngineLoop& loop) : call_(std::move(call)), loop_(&loop) {}

  // Errors: the broker's answer, ConnectionLost, TimedOut; MalformedMessage for an answer that is
  // none.

  void resolve(const ResolveAdapter& asked, Then<ResolvedAdapter> then);
  void open(const OpenAdapterLease& asked, Then<LeaseId> then);
  void filled(LeaseId lease, Then<void> then);
  /// The answer is ignored: the lease has ended, or ends with the connection.
  void close(LeaseId lease);

 private:
  template <class Message, class T, class Parse>
  void send(const Message& message, Then<T> then, Parse parse);

  Call call_;
  EngineLoop* loop_;
};

}  // namespace leasehold
