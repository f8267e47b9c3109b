/// What the broker signs about its audit chain, as in-toto statements in canonical JSON: its heads,
/// and the keys that sign them.
///
/// A statement's subject repeats what its predicate says, for readers that know in-toto only. A
/// parser here accepts exactly the text that the writer makes.
/// Pure. Threads: any. Sources: in-toto Statement v1; ipc/control/tokens/{audit_chain,merkle_tree,
/// audit_key}.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/audit.hpp"
#include "ipc/control/tokens/audit_key.hpp"

namespace leasehold::audit {

/// The payload of an envelope.
std::string payload_of(const wire::AuditHead& head);
std::string payload_of(const wire::AuditKey& key);
/// The inverse. Errors: BadRequest for anything that `payload_of` did not write.
Result<wire::AuditHead> parse_head(std::string_view payload);
Result<wire::AuditKey> parse_key(std::string_view payload);

/// The envelope that introduces `key` after `before`, which is null for the first key and for one
/// that replaces a lost key.
wire::DsseEnvelope introduce(const SigningKey& key, const SigningKey* before,
                             std::int64_t created_unix_ms);

/// The keys of one log, oldest first, each signed as wire::AuditKey says.
class KeyLinks {
 public:
  struct Key {
    PublicKey key;
    bool is_linked = false;  ///< Signed by the key before. False for the first one.
    std::int64_t created_unix_ms = 0;
  };
  /// Checks every signature. Errors: FileCorrupt, naming the key.
  static Result<KeyLinks> check(const std::vector<wire::DsseEnvelope>& links);

  const std::vector<Key>& keys() const { return keys_; }
  /// The id of the first key. Precondition: there is a key.
  std::string log() const { return keys_.front().key.id(); }
  /// True if `trusted` is `signer`, or if a chain of signatures leads from it to `signer`.
  bool leads(const PublicKey& trusted, const PublicKey& signer) const;

 private:
  std::vector<Key> keys_;
};

}  // namespace leasehold::audit
