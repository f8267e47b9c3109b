/// Holds open descriptors in reserve. When the process has reached its descriptor limit, one is
/// closed, so that an operator's connection can still be accepted. Threads: one.
#pragma once

#include <cstddef>
#include <vector>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

class SpareDescriptors {
 public:
  explicit SpareDescriptors(std::size_t count) : wanted_(count) { refill(); }

  /// Closes one descriptor; false if none is left.
  bool release_one();

  /// Opens the missing descriptors, as far as the limit allows.
  void refill();

 private:
  std::size_t wanted_;
  std::vector<UniqueFd> fds_;
};

}  // namespace leasehold
