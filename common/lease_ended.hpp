/// The errors that mean that a lease has ended.
#pragma once

#include "common/errc.hpp"

namespace leasehold {

constexpr bool is_lease_ended(Errc code) {
  return code == Errc::LeaseRevoked || code == Errc::LeaseFenced ||
         code == Errc::EngineLeaseFenced || code == Errc::StaleGeneration;
}

}  // namespace leasehold
