/// Queue of unsent lines, each with its descriptors. Internal to ipc/control.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

class Outbox {
 public:
  void push(std::string line, std::vector<UniqueFd> fds);

  /// Sends until the queue is empty or the socket is full. Sends a line's descriptors with its
  /// first byte and then closes them. Errors: ConnectionLost.
  Result<void> flush(int socket);

  void clear();
  bool empty() const { return lines_.empty(); }

  /// Memory that the queue costs: the unsent bytes, plus a page per descriptor, so that a slow
  /// reader cannot make this process hold thousands of descriptors.
  std::size_t cost_bytes() const { return cost_.bytes(); }

  /// Counts the cost in `meter`, too, from now on.
  void set_meter(std::shared_ptr<QueueMeter> meter) { cost_.set_meter(std::move(meter)); }

 private:
  struct Outgoing {
    std::string text;
    std::vector<UniqueFd> fds;
    std::size_t sent = 0;
  };

  std::deque<Outgoing> lines_;
  QueueCharge cost_;
};

}  // namespace leasehold::control
