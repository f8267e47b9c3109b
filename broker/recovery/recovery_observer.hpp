/// Observes MachineRestart, and recreates journaled fence proofs.
#pragma once

#include <optional>
#include <string_view>

#include "broker/books/fence_proof.hpp"

namespace leasehold {

class RecoveryObserver {
 public:
  /// Nothing if the boot ids are equal or the journal has none.
  static std::optional<MachineRestart> observe(std::string_view journaled_boot_id,
                                               std::string_view running_boot_id);

  /// Recreates the proof of a journaled fence from its name. An unknown name counts as LaunchQuiet,
  /// and so does an empty name, which means that only the table shows Fenced: a word becomes Fenced
  /// only with a proof, and the kind of the proof no longer matters.
  static FenceProof recorded(std::string_view proof_name, LeaseId lease, AttachmentId worker);
};

}  // namespace leasehold
