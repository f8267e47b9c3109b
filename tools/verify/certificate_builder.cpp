#include "tools/verify/certificate_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/hex.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::verify {
namespace {

using wire::Json;

constexpr std::int64_t kMsPerDay = 86'400'000;

/// The first day that begins after this time: "2026-11-24".
std::string day_after(std::int64_t unix_ms) {
  const std::int64_t days = unix_ms / kMsPerDay + 1;
  return cli::utc_text(days * (kMsPerDay / 1000)).substr(0, 10);
}

}  // namespace

Result<void> CertificateBuilder::add(const audit::Record& record) {
  const auto hash = audit::hash_from_hex(record.hash);
  if (!hash) return fail(Errc::FileCorrupt, fmt::format("record {} has no hash", record.sequence));
  const std::uint64_t leaf = tree_.size();
  tree_.append(audit::leaf_of(*hash));
  // Parsing takes most of the time; the records of other tenants do not need it.
  if (!record.content.contains(R"("tenant_record":)")) return {};
  if (!record.content.contains(R"("tenant":)" + Json(tenant_).dump())) return {};
  const Json content = Json::parse(record.content, nullptr, false);
  if (!content.is_object() || content.value("tenant", Json()) != tenant_) return {};
  auto place = wire::TenantPlace::from_json(content);
  if (!place) return {};
  records_.push_back({.record = {.leaf = leaf, .content = record.content}, .place = *place});
  return {};
}

/// The tenant's records from the end of the head's tree back to the beginning of the time.
Result<std::vector<audit::CertifiedRecord>> CertificateBuilder::window(
    const Request& request) const {
  const wire::AuditHead& head = request.head.head;
  const auto in_tree = [&](const TenantRecord& each) { return each.record.leaf < head.size; };
  auto at = std::ranges::partition_point(records_, in_tree);
  std::vector<audit::CertifiedRecord> window;
  std::int64_t newest_unix_ms = head.tenant->unix_ms;
  std::uint64_t number = head.tenant->records;
  while (number > 0 && newest_unix_ms >= request.since_unix_ms) {
    if (at == records_.begin()) {
      return fail(Errc::BadRequest,
                  fmt::format("retention removed records of that time: the first kept record is "
                              "of {}; use --since {}",
                              cli::utc_text(head.first_kept_unix_ms / 1000),
                              day_after(head.first_kept_unix_ms)));
    }
    --at;
    window.push_back(at->record);
    newest_unix_ms = at->place.tenant_previous_unix_ms;
    number = at->place.tenant_record - 1;
  }
  std::ranges::reverse(window);
  return window;
}

Result<std::optional<audit::KeptTree>> CertificateBuilder::continue_kept(
    const Request& request) const {
  if (!request.kept) return std::nullopt;
  const wire::AuditHead& head = request.head.head;
  const wire::AuditHead& kept = request.kept->head;
  if (kept.log != head.log)
    return fail(Errc::BadRequest, "the kept head is of another audit chain; name one of this");
  if (kept.size > head.size) {
    return fail(Errc::FileCorrupt,
                fmt::format("the kept head counts {} records, and the chain has only {}: records "
                            "were removed from its end; restore them from a backup",
                            kept.size, head.size));
  }
  if (kept.size == 0) return std::nullopt;
  if (kept.size < tree_.removed()) {
    return fail(Errc::BadRequest,
                fmt::format("the kept head is of {} records, and retention removed the first {}: "
                            "use a newer head",
                            kept.size, tree_.removed()));
  }
  const auto root = audit::hash_from_hex(kept.root);
  if (!root || tree_.root(kept.size) != *root) {
    return fail(Errc::FileCorrupt,
                fmt::format("the chain does not continue the kept head of {} records: records up "
                            "to there were changed; compare with a backup",
                            kept.size));
  }
  return audit::KeptTree{.tree = {.size = kept.size, .hash = *root},
                         .proof = tree_.consistency(kept.size, head.size)};
}

Result<audit::ErasureCertificate> CertificateBuilder::build(const Request& request) const {
  const wire::AuditHead& head = request.head.head;
  const auto root = audit::hash_from_hex(head.root);
  const bool has_tree = head.size >= tree_.removed() && head.size <= tree_.size();
  if (!has_tree || !root || tree_.root(head.size) != *root) {
    return fail(Errc::FileCorrupt,
                fmt::format("the broker's records do not lead to the head of {} records that it "
                            "signed; check the chain with `brokerctl audit verify`",
                            head.size));
  }
  audit::ErasureCertificate certificate{.keys = request.keys, .head = request.head.envelope};
  certificate.records = TRY(window(request));
  certificate.kept = TRY(continue_kept(request));
  std::vector<std::uint64_t> leaves;
  leaves.reserve(certificate.records.size());
  for (const audit::CertifiedRecord& record : certificate.records) leaves.push_back(record.leaf);
  certificate.proof = tree_.multiproof(leaves, head.size);
  return certificate;
}

}  // namespace leasehold::verify
