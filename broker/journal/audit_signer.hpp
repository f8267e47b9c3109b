/// Signs the heads of the audit chain, with a key in the state directory.
///
/// The file `audit-key`, mode 0600, holds the secret key and the signed statements that introduced
/// it and the keys before. The journal also has these statements, so that a new key after the loss
/// of the file shows that there were others; it is not signed by them. Threads: one.
/// Format: one JSON object; ipc/control/tokens/{audit_key,audit_statement}.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "ipc/control/messages/audit.hpp"
#include "ipc/control/tokens/audit_statement.hpp"

namespace leasehold::journal {

class AuditSigner {
 public:
  /// Reads the file. If there is none, there is no key yet. `known`: the statements that the
  /// journal has. Errors: FileCorrupt, also for a file that is older than the journal; those of
  /// read_secret_file.
  static Result<AuditSigner> open(const std::string& state_dir,
                                  std::vector<wire::DsseEnvelope> known);

  /// Creates the first key, or one that replaces a lost key, unless there is a key.
  /// Errors: those of write_state_file.
  Result<void> create_if_missing();
  /// Replaces the key by a new one, which the key signs. Errors: BadRequest after 1000 keys; those
  /// of write_state_file; the key is then unchanged. Precondition: there is a key.
  Result<void> rotate();

  /// Precondition of these: there is a key.
  wire::DsseEnvelope sign(wire::AuditHead head) const;
  std::string key_id() const { return key_->public_key().id(); }
  /// What introduced the newest key.
  wire::AuditKey newest() const;

  /// True if the newest key replaced a lost one, which could not sign it.
  bool is_replacement() const { return links_.size() > 1 && newest().previous.empty(); }

  /// Of all keys, the oldest first. Empty: there has been none.
  const std::vector<wire::DsseEnvelope>& links() const { return links_; }

 private:
  AuditSigner(std::string path, std::vector<wire::DsseEnvelope> links)
      : path_(std::move(path)), links_(std::move(links)) {}
  Result<void> store(const audit::SigningKey& key, const audit::SigningKey* before);
  Result<void> load(const std::string& text);

  std::string path_;
  std::vector<wire::DsseEnvelope> links_;
  std::optional<audit::SigningKey> key_;
};

}  // namespace leasehold::journal
