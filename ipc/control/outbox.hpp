/// Lines on their way out, each with its descriptors, in order. Internal to ipc/control.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"

namespace leasehold::control {

class Outbox {
 public:
  void push(std::string line, std::vector<UniqueFd> fds);

  /// Sends until nothing is left or the socket takes no more. A message's descriptors go with its
  /// first byte, and are closed here once sent. Errors: ConnectionLost.
  Result<void> flush(int socket);

  void clear();
  bool empty() const { return lines_.empty(); }

  /// What waiting costs this process: the unsent bytes, and a page for each descriptor, so that a
  /// reader that sleeps cannot make it hold thousands of them.
  std::size_t cost_bytes() const { return cost_bytes_; }

 private:
  struct Outgoing {
    std::string text;
    std::vector<UniqueFd> fds;
    std::size_t sent = 0;
  };
  std::deque<Outgoing> lines_;
  std::size_t cost_bytes_ = 0;
};

}  // namespace leasehold::control
