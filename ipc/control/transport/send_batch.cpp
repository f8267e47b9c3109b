#include "ipc/control/transport/send_batch.hpp"

#include <utility>

#include "ipc/control/transport/socket_peer.hpp"

namespace leasehold::control {
namespace {

thread_local SendBatch* outermost = nullptr;

}  // namespace

SendBatch::SendBatch() {
  if (outermost == nullptr) outermost = this;
}

SendBatch::~SendBatch() {
  if (outermost != this) return;
  outermost = nullptr;
  for (const auto& peer : peers_) peer->send_batched();
}

SendBatch* SendBatch::current() {
  return outermost;
}

}  // namespace leasehold::control
