#include "broker/server/connections/spare_descriptors.hpp"

#include <fcntl.h>

namespace leasehold {

bool SpareDescriptors::release_one() {
  if (fds_.empty()) return false;
  fds_.pop_back();
  return true;
}

void SpareDescriptors::refill() {
  while (fds_.size() < wanted_) {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) return;
    fds_.push_back(std::move(fd));
  }
}

}  // namespace leasehold
