/// Open descriptors that are closed when the process has reached its limit, so that it can still
/// accept an operator. Threads: one.
#pragma once

#include <cstddef>
#include <vector>

#include "common/unique_fd.hpp"

namespace leasehold {

class SpareDescriptors {
 public:
  explicit SpareDescriptors(std::size_t count) : wanted_(count) { refill(); }

  /// Closes one; false if none is left.
  bool release_one();

  /// Opens as many as are missing, while the limit allows.
  void refill();

 private:
  std::size_t wanted_;
  std::vector<UniqueFd> fds_;
};

}  // namespace leasehold
