#include "tests/unit/tools/verify/small_log.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/hex.hpp"

namespace leasehold::verify {

using wire::ErasureState;
using wire::Json;
using wire::MemoryFate;

namespace {

std::uint64_t& count_in(wire::LeaseCounts& counts, ErasureState state) {
  std::uint64_t* const by_state[] = {&counts.open, &counts.quarantined, &counts.held,
                                     &counts.erased};
  return *by_state[static_cast<int>(state)];
}

audit::Hash hash_of(const audit::Record& record) {
  return *audit::hash_from_hex(record.hash);
}

}  // namespace

SmallLog::SmallLog() : public_key_(key_.public_key()) {
  keys_.push_back(audit::introduce(key_, nullptr, kStart_ms));
}

void SmallLog::append(Json fields) {
  now_ms_ += 1000;
  fields["at_unix_ms"] = now_ms_;
  records_.push_back(audit::next_record(newest_, std::move(fields)));
  newest_ = {records_.back().sequence, records_.back().hash};
  tree_.append(audit::leaf_of(hash_of(records_.back())));
}

void SmallLog::append_lease_record(const std::string& tenant, Json fields) {
  wire::TenantHead& head = heads_[tenant];
  head.tenant = tenant;
  wire::TenantPlace place;
  place.tenant_record = head.records + 1;
  place.tenant_previous = head.records == 0 ? std::string(64, '0') : head.hash;
  place.tenant_previous_unix_ms = head.unix_ms;
  fields.update(place.to_json());
  append(std::move(fields));
  ++head.records;
  head.hash = newest_.hash;
  head.unix_ms = std::max(head.unix_ms, now_ms_);
}

void SmallLog::use(const std::string& tenant) {
  append({{"record", "usage_record"}, {"tenant", tenant}});
}

void SmallLog::count(const Lease& lease, std::int64_t by) {
  count_in(heads_[lease.tenant].leases, lease.state) += static_cast<std::uint64_t>(by);
}

LeaseId SmallLog::grant(const std::string& tenant, std::uint32_t extents,
                        std::optional<LeaseId> grown) {
  wire::LeaseGrantedRecord record;
  record.lease = grown ? *grown : LeaseId{.slot = 7, .generation = next_lease_++};
  record.tenant = tenant;
  record.worker = "w0";
  record.attachment = AttachmentId{3};
  record.opens = !grown;
  wire::MemoryGranted& memory = record.granted.emplace_back();
  memory.extents = extents;
  memory.bytes = extents * kExtentBytes;
  record.granted_unix_ms = now_ms_ + 1000;
  Json fields = record.to_json();
  fields["record"] = "lease_granted";
  Lease& lease = leases_[record.lease];
  if (!grown) {
    lease.tenant = tenant;
    ++heads_[tenant].leases.granted;
    count(lease, 1);
  }
  lease.open += extents;
  append_lease_record(tenant, std::move(fields));
  return record.lease;
}

void SmallLog::settle(LeaseId id, MemoryFate to) {
  wire::MemorySettled settled;
  settled.to = to;
  settled.extents = leases_.at(id).open;
  settled.bytes = settled.extents * kExtentBytes;
  ErasureState state = ErasureState::Erased;
  if (to == MemoryFate::Held) state = ErasureState::Held;
  if (to == MemoryFate::Quarantined) state = ErasureState::Quarantined;
  settle(id, {settled}, state);
}

void SmallLog::settle(LeaseId id, const std::vector<wire::MemorySettled>& settled,
                      ErasureState state, std::uint32_t open_extents) {
  Lease& lease = leases_.at(id);
  wire::LeaseErasedRecord record;
  record.lease = id;
  record.tenant = lease.tenant;
  record.worker = "w0";
  record.scope = wire::LeaseScope::Tenant;
  record.reason = "released";
  record.revoked_unix_ms = now_ms_;
  record.fenced_unix_ms = now_ms_ + 1;
  record.proof = "LaunchQuiet";
  record.settled = settled;
  record.open_extents = open_extents;
  record.state = state;
  Json fields = record.to_json();
  fields["record"] = "lease_erased";
  count(lease, -1);
  lease.state = state;
  lease.open = open_extents;
  count(lease, 1);
  append_lease_record(lease.tenant, std::move(fields));
}

void SmallLog::change_key(bool is_lost) {
  const audit::SigningKey next = audit::SigningKey::create();
  keys_.push_back(audit::introduce(next, is_lost ? nullptr : &key_, now_ms_));
  key_ = next;
  public_key_ = key_.public_key();
}

void SmallLog::remove(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) removed_.append(audit::leaf_of(hash_of(records_[i])));
  removed_link_ = {records_[count - 1].sequence, records_[count - 1].hash};
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
}

SignedHead SmallLog::head(const std::optional<std::string>& tenant) const {
  SignedHead result;
  wire::AuditHead& head = result.head;
  head.log = audit::KeyLinks::check(keys_)->log();
  head.size = tree_.size();
  head.root = to_hex(tree_.root());
  head.sequence = newest_.sequence;
  head.hash = newest_.hash;
  head.removed_size = removed_.size();
  head.removed_sequence = removed_link_.sequence;
  if (!records_.empty())
    head.first_kept_unix_ms = Json::parse(records_.front().content)["at_unix_ms"];
  head.signed_unix_ms = now_ms_;
  head.gaps = gaps;
  head.waiting = waiting;
  if (tenant) {
    const auto found = heads_.find(*tenant);
    wire::TenantHead& part = head.tenant.emplace();
    part.tenant = *tenant;
    part.hash = std::string(64, '0');
    if (found != heads_.end()) part = found->second;
  }
  result.envelope = audit::sign(audit::payload_of(head), key_);
  return result;
}

wire::AuditPage SmallLog::page(std::uint64_t after) const {
  wire::AuditPage page;
  for (const audit::Record& record : records_)
    if (record.sequence > after)
      page.records.push_back(
          {.sequence = record.sequence, .content = record.content, .hash = record.hash});
  page.removed_sequence = removed_link_.sequence;
  page.removed_hash = removed_link_.hash;
  page.head_sequence = newest_.sequence;
  page.head_hash = newest_.hash;
  page.removed_tree = removed_.text();
  return page;
}

wire::AuditKeys SmallLog::keys() const {
  wire::AuditKeys keys;
  keys.keys = keys_;
  return keys;
}

CertificateBuilder SmallLog::builder(const std::string& tenant) const {
  CertificateBuilder builder(removed_, tenant);
  for (const audit::Record& record : records_) REQUIRE(builder.add(record));
  return builder;
}

Result<audit::ErasureCertificate> SmallLog::build(const std::string& tenant,
                                                  std::int64_t since_unix_ms,
                                                  const std::optional<SignedHead>& kept) const {
  return builder(tenant).build(
      {.since_unix_ms = since_unix_ms, .keys = keys_, .head = head(tenant), .kept = kept});
}

std::string SmallLog::certificate(const std::string& tenant, std::int64_t since_unix_ms,
                                  const std::optional<SignedHead>& kept) const {
  const auto built = build(tenant, since_unix_ms, kept);
  REQUIRE(built.has_value());
  return built->text();
}

}  // namespace leasehold::verify
