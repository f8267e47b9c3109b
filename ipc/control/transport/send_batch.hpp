/// Collects what the peers of this thread send, so that many lines take one system call.
///
/// Lifetime: a local variable; nothing is sent before it ends, except what exceeds 64 KiB of a
/// peer, and the lines of a peer that is closed. Inside another batch it does nothing. Threads:
/// one.
#pragma once

#include <memory>
#include <set>
#include <utility>

namespace leasehold::control {

class SocketPeer;

class SendBatch {
 public:
  SendBatch();
  ~SendBatch();
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  /// The outermost batch of this thread; null if there is none.
  static SendBatch* current();
  /// Sends the peer's lines at the end of the batch.
  void add(std::shared_ptr<SocketPeer> peer) { peers_.insert(std::move(peer)); }

 private:
  std::set<std::shared_ptr<SocketPeer>> peers_;
};

}  // namespace leasehold::control
