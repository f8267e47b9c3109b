#include "tools/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "common/hex.hpp"
#include "ipc/control/tokens/audit_chain.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::verify {
namespace {

using audit::ErasureCertificate;
using audit::KeyLinks;
using wire::Json;

std::unexpected<Error> refuse(std::string why) {
  return fail(Errc::FileCorrupt, std::move(why));
}

std::string date(std::int64_t unix_ms) {
  return cli::utc_text(unix_ms / 1000);
}

/// A record with the members that every record has.
struct ParsedRecord {
  Json content;
  std::string hash;
  std::uint64_t sequence = 0;
  std::int64_t at_unix_ms = 0;
  wire::TenantPlace place;

  /// For errors.
  std::string name() const { return fmt::format("record {}", sequence); }
};

/// `text`: of the content. `number`: of the record in the certificate, from 1.
Result<ParsedRecord> parse_record(Json content, const std::string& text, std::size_t number) {
  ParsedRecord record{.content = std::move(content), .hash = audit::hash_of(text)};
  const Json& object = record.content;
  const auto is_number = [&](const char* member) {
    return object.contains(member) && object[member].is_number_integer();
  };
  const auto place = wire::TenantPlace::from_json(object);
  if (!place || !is_number("sequence") || !is_number("at_unix_ms"))
    return refuse(fmt::format("the certificate's record {} is not an audit record", number));
  record.sequence = object["sequence"].get<std::uint64_t>();
  record.at_unix_ms = object["at_unix_ms"].get<std::int64_t>();
  record.place = *place;
  return record;
}

/// Finds the key of the log that signed the head and that the auditor's key leads to.
Result<audit::PublicKey> find_signer(const wire::DsseEnvelope& head, const KeyLinks& links,
                                     const audit::PublicKey& trusted) {
  bool is_signed = false;
  for (const KeyLinks::Key& key : links.keys()) {
    if (!audit::is_signed_by(head, key.key)) continue;
    if (links.leads(trusted, key.key)) return key.key;
    is_signed = true;
  }
  if (!is_signed) return refuse("the head has no valid signature of a key of its audit chain");
  return refuse(
      fmt::format("the head is signed by a key that {} does not lead to; if the operator "
                  "lost a key, get the new one in a way that you trust",
                  trusted.text()));
}

/// Walks the tenant's chain from its signed end to the beginning of the window.
class ChainWalk {
 public:
  explicit ChainWalk(const wire::TenantHead& head)
      : tenant_(head.tenant), number_(head.records), hash_(head.hash), unix_ms_(head.unix_ms) {}

  /// Takes the record before the one that was taken last.
  Result<void> take(const ParsedRecord& record) {
    const auto tenant = record.content.find("tenant");
    if (tenant == record.content.end() || *tenant != tenant_)
      return refuse(record.name() + " is of another tenant");
    const std::uint64_t shown = record.place.tenant_record;
    if (shown < number_)
      return refuse(fmt::format("the tenant's record {} is missing before {}", number_, after_));
    if (shown > number_)
      return refuse(fmt::format("{} is the tenant's record {}, and is in the place of {}",
                                record.name(), shown, number_));
    const std::int64_t latest = std::max(record.at_unix_ms, record.place.tenant_previous_unix_ms);
    if (record.hash != hash_ || latest != unix_ms_)
      return refuse(
          fmt::format("{} was changed: {} has another hash of it", record.name(), after_));
    number_ = shown - 1;
    hash_ = record.place.tenant_previous;
    unix_ms_ = record.place.tenant_previous_unix_ms;
    after_ = record.name();
    return {};
  }

  /// Call after the oldest record of the certificate. Returns the latest time of the records before
  /// it, or 0 if there is none.
  Result<std::int64_t> finish(const std::optional<std::int64_t>& since_unix_ms) const {
    if (number_ == 0 && hash_ != audit::Link{}.hash)
      return refuse(fmt::format("{} is the tenant's first, and names one before it", after_));
    if (number_ == 0) return 0;
    if (!since_unix_ms || unix_ms_ < *since_unix_ms) return unix_ms_;
    return refuse(
        fmt::format("the tenant's records up to {} are missing before {}, and one of {} is of the "
                    "time that you ask about",
                    number_, after_, date(unix_ms_)));
  }

 private:
  std::string tenant_;
  // What the records up to here say about the one before.
  std::uint64_t number_;
  std::string hash_;
  std::int64_t unix_ms_;
  std::string after_ = "the signed head";
};

/// `objects`: the contents of the certificate's records.
Result<std::vector<ParsedRecord>> parse_records(const ErasureCertificate& certificate,
                                                std::vector<Json> objects) {
  std::vector<ParsedRecord> records;
  records.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i)
    records.push_back(
        TRY(parse_record(std::move(objects[i]), certificate.records[i].content, i + 1)));
  return records;
}

Result<void> check_tree(const ErasureCertificate& certificate,
                        const std::vector<ParsedRecord>& records, const wire::AuditHead& head) {
  std::vector<audit::Leaf> leaves;
  leaves.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    leaves.push_back(
        {certificate.records[i].leaf, audit::leaf_of(*audit::hash_from_hex(records[i].hash))});
  const auto root = audit::root_of(head.size, leaves, certificate.proof);
  if (root && to_hex(*root) == head.root) return {};
  return refuse(fmt::format(
      "the proof does not lead from the records to the signed root of {} records: it belongs to "
      "another head, or it or the place of a record was changed",
      head.size));
}

/// Compares the certificate with a head that the auditor kept.
Result<void> check_kept_head(const ErasureCertificate& certificate, const KeyLinks& links,
                             const wire::AuditHead& head, const SignedHead& kept) {
  const wire::AuditHead& old = kept.head;
  const bool is_signed = std::ranges::any_of(links.keys(), [&](const KeyLinks::Key& key) {
    return audit::is_signed_by(kept.envelope, key.key);
  });
  if (old.log != head.log || !is_signed)
    return refuse("the kept head is not one of the certificate's audit chain");
  if (old.size > head.size) {
    return refuse(fmt::format(
        "the kept head of {} counts {} records, and the certificate's head of {} only {}: records "
        "were removed from the end of the chain, or the certificate is older",
        date(old.signed_unix_ms), old.size, date(head.signed_unix_ms), head.size));
  }
  if (old.size == 0 || (old.size == head.size && old.root == head.root)) return {};
  if (old.size == head.size || !certificate.kept) {
    return refuse(fmt::format(
        "the certificate does not show that its chain continues the kept head of {} records{}",
        old.size,
        old.size == head.size ? ": the roots differ"
                              : "; ask for one made with `--head` and this kept head"));
  }
  if (certificate.kept->tree.size == old.size && to_hex(certificate.kept->tree.hash) == old.root)
    return {};
  return refuse(fmt::format(
      "the certificate shows that its chain continues another head than the kept one of {} records",
      old.size));
}

Result<void> check_kept_tree(const ErasureCertificate& certificate, const wire::AuditHead& head) {
  const auto root = audit::hash_from_hex(head.root);
  if (!certificate.kept || (root && audit::is_consistent(certificate.kept->tree, {head.size, *root},
                                                         certificate.kept->proof)))
    return {};
  return refuse(
      fmt::format("the chain does not continue the kept head of {} records: records up to there "
                  "were changed or removed, or the proof was",
                  certificate.kept->tree.size));
}

/// Compares the leases of the records with the signed counts, which are of all time.
Result<void> check_counts(const Verdict& verdict) {
  wire::LeaseCounts shown;
  for (const auto& [id, lease] : verdict.leases) {
    ++shown.granted;
    ++wire::count_of(shown, lease.state);
  }
  const wire::LeaseCounts& all = verdict.head.tenant->leases;
  if (all.granted != all.open + all.held + all.quarantined + all.erased)
    return refuse("the signed numbers of leases do not add up");
  const std::pair<std::uint64_t, std::uint64_t> pairs[] = {{shown.granted, all.granted},
                                                           {shown.open, all.open},
                                                           {shown.held, all.held},
                                                           {shown.quarantined, all.quarantined},
                                                           {shown.erased, all.erased}};
  for (const auto& [in_records, in_head] : pairs) {
    if (in_records <= in_head && (verdict.after_unix_ms != 0 || in_records == in_head)) continue;
    return refuse(
        fmt::format("the records show {} leases, {} of them erased, and the signed head "
                    "counts {} and {}",
                    shown.granted, shown.erased, all.granted, all.erased));
  }
  return {};
}

Result<void> add_accounts(const std::vector<ParsedRecord>& records, Verdict& verdict) {
  LeaseAccounts accounts;
  for (const ParsedRecord& record : records) {
    const auto added = accounts.add(record.content);
    if (!added) return refuse(record.name() + " " + added.error().detail);
  }
  TRY(accounts.finish());
  verdict.leases = accounts.leases();
  return check_counts(verdict);
}

Result<wire::AuditHead> parse_tenant_head(const ErasureCertificate& certificate,
                                          const KeyLinks& links) {
  const auto payload = audit::payload_of(certificate.head);
  auto head = payload ? audit::parse_head(*payload) : std::unexpected(payload.error());
  if (!head || !head->tenant) return refuse("the signed head is not one of a tenant's leases");
  if (head->log != links.log()) return refuse("the signed head is of another audit chain");
  return *std::move(head);
}

}  // namespace

bool Verdict::is_complete() const {
  const wire::LeaseCounts& counts = head.tenant->leases;
  return counts.granted == counts.erased && head.waiting == 0;
}

Result<SignedHead> parse_signed_head(std::string_view text) {
  const auto refuse_kept = [] {
    return refuse("the kept head is not a head as `brokerctl audit head` prints it");
  };
  while (text.ends_with('\n')) text.remove_suffix(1);
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return refuse_kept();
  auto envelope = wire::DsseEnvelope::from_json(object);
  if (!envelope || envelope->to_json().dump() != text) return refuse_kept();
  const auto payload = audit::payload_of(*envelope);
  auto head = payload ? audit::parse_head(*payload) : std::unexpected(payload.error());
  if (!head) return refuse_kept();
  return SignedHead{*std::move(envelope), *std::move(head)};
}

Result<Verdict> verify(std::string_view text, const Expected& expected) {
  std::vector<Json> objects;
  const ErasureCertificate certificate = TRY(ErasureCertificate::from_text(text, objects));
  const KeyLinks links = TRY(KeyLinks::check(certificate.keys));
  Verdict verdict;
  verdict.signer = TRY(find_signer(certificate.head, links, expected.key));
  verdict.key_count = links.keys().size();
  verdict.lost_keys = static_cast<std::size_t>(
      std::ranges::count(links.keys() | std::views::drop(1), false, &KeyLinks::Key::is_linked));
  verdict.records = certificate.records.size();
  verdict.head = TRY(parse_tenant_head(certificate, links));
  verdict.unchecked_signatures = certificate.head.signatures.size() - 1;

  const std::vector<ParsedRecord> records = TRY(parse_records(certificate, std::move(objects)));
  ChainWalk walk(*verdict.head.tenant);
  for (const ParsedRecord& record : records | std::views::reverse) TRY(walk.take(record));
  verdict.after_unix_ms = TRY(walk.finish(expected.since_unix_ms));

  TRY(check_tree(certificate, records, verdict.head));
  TRY(check_kept_tree(certificate, verdict.head));
  if (expected.kept_head) {
    const SignedHead kept = TRY(parse_signed_head(*expected.kept_head));
    TRY(check_kept_head(certificate, links, verdict.head, kept));
    verdict.kept = kept.head;
  }
  TRY(add_accounts(records, verdict));
  return verdict;
}

}  // namespace leasehold::verify
