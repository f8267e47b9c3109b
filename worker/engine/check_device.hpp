/// Checks that the compute device works. After a fault, results of launches are invalid.
#pragma once

#include "common/result.hpp"
#include "kernels/backend.hpp"

namespace leasehold {

/// Errors: the device's fault, which is final.
inline Result<void> check_device(const Backend& backend) {
  if (const auto fault = backend.fault()) return std::unexpected(*fault);
  return {};
}

}  // namespace leasehold
