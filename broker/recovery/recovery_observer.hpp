/// The only witness of MachineRestart, and the reader of evidence that was seen before a restart.
#pragma once

#include <optional>
#include <string_view>

#include "broker/books/fence_proof.hpp"

namespace leasehold {

class RecoveryObserver {
 public:
  /// Nothing while the machine runs since before the journal was last written, or when the journal
  /// does not say.
  static std::optional<MachineRestart> observe(std::string_view journaled_boot_id,
                                               std::string_view running_boot_id);

  /// The proof of a fence that is journaled, by its name. A name this broker does not know, or none
  /// (only the table says Fenced), counts as LaunchQuiet: a word is lowered to Fenced upon proof
  /// and never otherwise, and of which kind it was no longer matters.
  static FenceProof recorded(std::string_view proof_name, LeaseId lease, AttachmentId worker);
};

}  // namespace leasehold
