/// Queue of unsent lines, each with its descriptors. Internal to ipc/control.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::control {

class Outbox {
 public:
  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() { clear(); }

  void push(std::string line, std::vector<UniqueFd> fds);

  /// Sends until the queue is empty or the socket is full. Sends a line's descriptors with its
  /// first byte and then closes them. Errors: ConnectionLost.
  Result<void> flush(int socket);

  void clear();
  bool empty() const { return lines_.empty(); }

  /// Memory that the queue costs: the unsent bytes, plus a page per descriptor, so that a slow
  /// reader cannot make this process hold thousands of descriptors.
  std::size_t cost_bytes() const { return cost_bytes_; }

  /// Counts the cost there, too, from now on.
  void set_meter(std::shared_ptr<QueueMeter> meter);

 private:
  struct Outgoing {
    std::string text;
    std::vector<UniqueFd> fds;
    std::size_t sent = 0;
  };
  void charge(std::size_t bytes);
  void refund(std::size_t bytes);

  std::deque<Outgoing> lines_;
  std::size_t cost_bytes_ = 0;
  std::shared_ptr<QueueMeter> meter_;
};

}  // namespace leasehold::control
