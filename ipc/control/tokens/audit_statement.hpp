/// What the broker signs about its audit chain, as in-toto statements in canonical JSON: heads, and
/// the keys that sign them.
///
/// A statement's subject repeats what its predicate says, for readers that know in-toto only. A
/// parser here accepts exactly the text that the writer makes.
/// Pure. Threads: any. Sources: in-toto Statement v1; ipc/control/tokens/{audit_chain,merkle_tree,
/// audit_key}.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/tokens/audit_key.hpp"

namespace leasehold::audit {

/// The leases of one tenant since the log began, by what became of their memory. `granted` is the
/// sum of the others: a lease is `quarantined` if any of its memory is, else `held` if any of it
/// is, else `open` if memory is not settled, else `erased`.
struct LeaseCounts {
  std::uint64_t granted = 0;
  std::uint64_t erased = 0;
  std::uint64_t open = 0;
  std::uint64_t held = 0;
  std::uint64_t quarantined = 0;
  bool operator==(const LeaseCounts&) const = default;
};

/// The end of a tenant's own chain, in which each record has the hash and the time of the one
/// before: what the next record would hold as its `tenant_previous…`.
struct TenantHead {
  std::string tenant;         ///< Empty: shared memory without a tenant.
  std::uint64_t records = 0;  ///< The number of the newest record; 0: none.
  std::string newest_hash = std::string(64, '0');
  std::int64_t newest_unix_ms = 0;
  LeaseCounts leases;
  bool operator==(const TenantHead&) const = default;
};

/// A time in which the disk was full and grants or ends of memory were not recorded.
struct AuditGap {
  std::int64_t since_unix_ms = 0;
  std::int64_t until_unix_ms = 0;
  std::uint64_t granted = 0;
  std::uint64_t erased = 0;
  bool operator==(const AuditGap&) const = default;
};

/// The state of the chain when it was signed.
struct HeadStatement {
  std::string log;              ///< Names the chain: the id of its first key.
  std::uint64_t tree_size = 0;  ///< Records ever appended.
  std::string root;             ///< Of the Merkle tree of that size.
  std::uint64_t newest_sequence = 0;
  std::string newest_hash = std::string(64, '0');
  std::uint64_t removed_size = 0;  ///< Records that retention removed.
  std::uint64_t removed_sequence = 0;
  std::int64_t first_kept_unix_ms = 0;  ///< Of the oldest record that is left; 0: none.
  std::int64_t signed_unix_ms = 0;
  std::vector<AuditGap> gaps;
  std::optional<TenantHead> tenant;
  bool operator==(const HeadStatement&) const = default;
};

/// Introduces a key of the log. The key before signs it; the first key, and a key made after the
/// secret of the one before was lost, sign themselves.
struct KeyStatement {
  std::string log;
  std::uint64_t number = 0;  ///< 1, 2, 3…
  std::string key;           ///< See PublicKey::text.
  std::string previous;      ///< The key that signs this one; empty: none.
  std::int64_t created_unix_ms = 0;
  bool operator==(const KeyStatement&) const = default;
};

/// The payload of an envelope.
std::string payload_of(const HeadStatement& head);
std::string payload_of(const KeyStatement& key);
/// The inverse. Errors: BadRequest for anything that `payload_of` did not write.
Result<HeadStatement> parse_head(std::string_view payload);
Result<KeyStatement> parse_key(std::string_view payload);

/// The envelope that introduces `key` after `before`, which is null for the first key and an
/// unlinked one. `number`: see KeyStatement. An empty `log` is that of the first key.
Envelope introduce(const SigningKey& key, const SigningKey* before, std::uint64_t number,
                   const std::string& log, std::int64_t now_unix_ms);

/// The keys of one log, oldest first, each signed as KeyStatement says.
class KeyLinks {
 public:
  struct Key {
    PublicKey key;
    bool is_linked = false;  ///< Signed by the key before. False for the first one.
    std::int64_t created_unix_ms = 0;
  };
  /// Checks every signature, the numbers and the log's name. Errors: FileCorrupt, naming the key.
  static Result<KeyLinks> check(const std::vector<Envelope>& links);

  const std::vector<Key>& keys() const { return keys_; }
  /// The id of the first key. Precondition: there is a key.
  std::string log() const { return keys_.front().key.id(); }
  /// True if `trusted` is `signer`, or if a chain of signatures leads from it to `signer`.
  bool leads(const PublicKey& trusted, const PublicKey& signer) const;

 private:
  std::vector<Key> keys_;
};

}  // namespace leasehold::audit
