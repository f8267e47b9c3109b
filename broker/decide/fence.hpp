/// Fences revoked leases.
#pragma once

#include <span>

#include "broker/decide/decision.hpp"

namespace leasehold {

struct ProvenLease {
  LeaseId lease;
  FenceProof proof;
};

/// Fences the given leases that are Revoked: stores the words, punches the memory, then asks the
/// worker to unmap it. Precondition: every lease is open and covered by its proof.
void fence_all(Decision& decision, std::span<const ProvenLease> leases);

}  // namespace leasehold
