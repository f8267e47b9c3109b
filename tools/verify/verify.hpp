/// Checks an erasure certificate without a broker.
///
/// Nothing in the certificate is trusted but what the auditor's key signed. Pure. Threads: any.
/// Format: ipc/control/tokens/erasure_certificate.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ipc/control/tokens/audit_statement.hpp"
#include "ipc/control/tokens/erasure_certificate.hpp"
#include "tools/verify/lease_accounts.hpp"

namespace leasehold::verify {

/// A sound certificate: what it says.
struct Verdict {
  wire::AuditHead head;  ///< Has a tenant.
  /// The certificate is about all leases that were granted after this time; 0: about all.
  std::int64_t after_unix_ms = 0;
  audit::PublicKey signer;
  std::size_t key_count = 0;             ///< Keys that the log has had.
  std::size_t lost_keys = 0;             ///< Those that could not sign the key after them.
  std::size_t unchecked_signatures = 0;  ///< Signatures beside the checked one.
  std::uint64_t records = 0;
  std::map<LeaseId, LeaseAccount> leases;
  std::optional<wire::AuditHead> kept;  ///< The kept head that the certificate agrees with.

  /// True if no memory of the tenant is open, held or quarantined, and no record is missing that
  /// the broker knows of.
  bool is_complete() const;
};

/// Errors: FileCorrupt for a certificate that is forged or contradicts itself or the kept head; the
/// detail names the record. `kept_head`: an envelope of wire::AuditHead, as `brokerctl audit head`
/// prints it. `since_unix_ms`: the certificate must be about all leases granted from then on.
struct Expected {
  audit::PublicKey key;  ///< The auditor trusts it, and the keys that it leads to.
  std::optional<std::string> kept_head{};
  std::optional<std::int64_t> since_unix_ms{};
};
Result<Verdict> verify(std::string_view certificate, const Expected& expected);

/// Parses a kept head. The signature is not checked. Errors: FileCorrupt.
struct SignedHead {
  wire::DsseEnvelope envelope;
  wire::AuditHead head;
};
Result<SignedHead> parse_signed_head(std::string_view text);

}  // namespace leasehold::verify
