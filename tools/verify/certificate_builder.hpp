/// Makes a certificate from the records of an audit chain and its signed head.
///
/// The source of the records is not trusted: they must lead to the signed root. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipc/control/tokens/audit_chain.hpp"
#include "ipc/control/tokens/erasure_certificate.hpp"
#include "tools/verify/verify.hpp"

namespace leasehold::verify {

class CertificateBuilder {
 public:
  /// `removed`: the tree of the records that retention removed. `tenant`: see wire::TenantHead.
  CertificateBuilder(audit::MerkleFrontier removed, std::string tenant)
      : tree_(std::move(removed)), tenant_(std::move(tenant)) {}

  /// Takes the records that are left, oldest first. Errors: FileCorrupt for a hash that is none.
  Result<void> add(const audit::Record& record);

  struct Request {
    std::int64_t since_unix_ms = 0;
    std::vector<wire::DsseEnvelope> keys;
    SignedHead head;                 ///< Of `tenant`; not newer than the last record.
    std::optional<SignedHead> kept;  ///< An older head of the same chain.
  };
  /// Errors: BadRequest if retention removed records that the time or the kept head needs;
  /// FileCorrupt if the records do not lead to the head, or do not continue the kept one.
  Result<audit::ErasureCertificate> build(const Request& request) const;

 private:
  struct TenantRecord {
    audit::CertifiedRecord record;
    wire::TenantPlace place;
  };
  Result<std::vector<audit::CertifiedRecord>> window(const Request& request) const;
  Result<std::optional<audit::KeptTree>> continue_kept(const Request& request) const;

  audit::MerkleTree tree_;
  std::string tenant_;
  std::vector<TenantRecord> records_;  // of the tenant
};

}  // namespace leasehold::verify
