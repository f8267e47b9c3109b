/// A certificate of what became of the memory that a tenant leased: the file that an auditor gets.
///
/// It holds the newest records of the tenant's own chain (wire::TenantPlace), the signed head that
/// ends that chain, and a proof that the records are in the tree whose root the head signs. Nothing
/// in it is unsigned: the time that it covers begins after the record before its first one, whose
/// time the first one has. The file is JSON in canonical form, members sorted by name without
/// spaces, so that every changed byte shows. Hashes of proofs are one base64 text. Pure. Threads:
/// any. Checks: tools/verify.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/audit.hpp"
#include "ipc/control/tokens/merkle_tree.hpp"

namespace leasehold::audit {

/// A record and its leaf in the tree.
struct CertifiedRecord {
  std::uint64_t leaf = 0;
  std::string content;  ///< Of a LeaseGrantedRecord or LeaseErasedRecord, with its TenantPlace.
};

/// Proves that the tree of a head that the reader kept is the beginning of this one.
struct KeptTree {
  TreeRoot tree;
  Proof proof;  ///< See MerkleTree::consistency.
};

struct ErasureCertificate {
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

  std::vector<wire::DsseEnvelope> keys;  ///< See wire::AuditKeys.
  wire::DsseEnvelope head;               ///< Of a wire::AuditHead with its tenant.
  std::vector<CertifiedRecord> records;  ///< Oldest first.
  Proof proof;                           ///< See MerkleTree::multiproof.
  std::optional<KeptTree> kept;

  std::string text() const;
  /// The inverse of `text`. `objects` gets the parsed records, in their order. Errors: FileCorrupt,
  /// saying where, for a text that `text` does not write.
  static Result<ErasureCertificate> from_text(std::string_view text,
                                              std::vector<nlohmann::json>& objects);
};

}  // namespace leasehold::audit
