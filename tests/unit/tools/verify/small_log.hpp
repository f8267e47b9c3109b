/// A small audit chain with leases of several tenants, as a broker would write and sign it. Each
/// record is one second later than the one before. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/tokens/audit_chain.hpp"
#include "tools/verify/certificate_builder.hpp"

namespace leasehold::verify {

class SmallLog {
 public:
  static constexpr std::int64_t kStart_ms = 1'795'996'800'000;  // 2026-11-30T00:00:00Z
  static constexpr std::uint64_t kExtentBytes = 65'536;

  SmallLog();

  /// Grants a lease of this number of extents. A second call for a lease is its growth.
  LeaseId grant(const std::string& tenant, std::uint32_t extents = 2,
                std::optional<LeaseId> lease = std::nullopt);
  /// Settles all open extents of the lease.
  void settle(LeaseId lease, wire::MemoryFate to = wire::MemoryFate::VerifiedZero);
  void settle(LeaseId lease, const std::vector<wire::MemorySettled>& settled,
              wire::ErasureState state, std::uint32_t open_extents = 0);
  /// A record that is not about a lease.
  void use(const std::string& tenant);
  /// Appends any record about a lease of a tenant.
  void append_lease_record(const std::string& tenant, wire::Json fields);

  /// The old key signs the new one, unless it is lost.
  void change_key(bool is_lost = false);
  /// Removes the oldest records, as retention does.
  void remove(std::size_t count);
  /// Removes the newest records with everything that the broker knows about them.
  void cut_to(const SmallLog& earlier) { *this = earlier; }

  SignedHead head(const std::optional<std::string>& tenant = std::nullopt) const;
  CertificateBuilder builder(const std::string& tenant) const;
  Result<audit::ErasureCertificate> build(const std::string& tenant, std::int64_t since_unix_ms = 0,
                                          const std::optional<SignedHead>& kept = {}) const;
  /// The text of a certificate that must be possible.
  std::string certificate(const std::string& tenant, std::int64_t since_unix_ms = 0,
                          const std::optional<SignedHead>& kept = {}) const;

  /// What a broker replies to `audit.list` and `audit.key`.
  wire::AuditPage page(std::uint64_t after) const;
  wire::AuditKeys keys() const;

  const audit::PublicKey& key() const { return public_key_; }
  std::int64_t now_ms() const { return now_ms_; }
  void set_clock_back(std::int64_t by_ms) { now_ms_ -= by_ms; }
  std::uint64_t size() const { return tree_.size(); }
  /// For tests that make the broker lie.
  wire::LeaseCounts& counts(const std::string& tenant) { return heads_[tenant].leases; }
  std::uint64_t waiting = 0;
  std::uint64_t gaps = 0;

 private:
  struct Lease {
    std::string tenant;
    std::uint32_t open = 0;
    wire::ErasureState state = wire::ErasureState::Open;
  };
  void append(wire::Json fields);
  void count(const Lease& lease, std::int64_t by);

  audit::SigningKey key_ = audit::SigningKey::create();
  audit::PublicKey public_key_;
  std::vector<wire::DsseEnvelope> keys_;
  std::vector<audit::Record> records_;
  audit::Link newest_;
  audit::Link removed_link_;
  audit::MerkleFrontier tree_;
  audit::MerkleFrontier removed_;
  std::map<std::string, wire::TenantHead> heads_;
  std::map<LeaseId, Lease> leases_;
  std::uint64_t next_lease_ = 1;
  std::int64_t now_ms_ = kStart_ms;
};

}  // namespace leasehold::verify
