#include "tools/brokerctl/certificate.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ranges>

#include "common/machine/replace_file.hpp"
#include "common/machine/text_file.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/brokerctl/audit.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"
#include "tools/verify/certificate_builder.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::size_t kMaxHeadBytes = 1 << 20;

Result<verify::SignedHead> read_head(const std::optional<std::string>& tenant,
                                     const Dependencies& dependencies) {
  wire::AuditHeadQuery query;
  query.tenant = tenant;
  const Json reply = TRY(dependencies.call(wire::AuditHeadQuery::kMethod, query.to_json()));
  return verify::parse_signed_head(reply.dump());
}

struct SigningKeys {
  audit::KeyLinks links;
  wire::AuditKeys message;
};

Result<SigningKeys> keys_of(const Json& reply) {
  auto message = TRY(client::parse_message<wire::AuditKeys>(reply));
  auto links = TRY(audit::KeyLinks::check(message.keys));
  return SigningKeys{std::move(links), std::move(message)};
}

/// Reads the records after the head was signed, so that they include all of the head's.
Result<verify::CertificateBuilder> read_records(const std::string& tenant,
                                                const Dependencies& dependencies) {
  std::optional<verify::CertificateBuilder> builder;
  std::uint64_t last = 0;
  const auto read =
      for_each_audit_page(0, dependencies, [&](const wire::AuditPage& page) -> Result<void> {
        if (!builder) {
          const bool has_tree = !page.removed_tree.empty();
          const auto removed = has_tree ? audit::MerkleFrontier::from_text(page.removed_tree)
                                        : std::optional(audit::MerkleFrontier());
          if (!removed)
            return fail(Errc::MalformedMessage, "the broker sent no tree of the removed records");
          builder.emplace(*removed, tenant);
        } else if (page.removed_sequence > last) {
          return fail(Errc::TimedOut,
                      "retention removed records while they were read; try again, or raise "
                      "--audit-records of leasehold-broker");
        }
        for (const wire::AuditRecordView& record : page.records)
          TRY(builder->add({record.sequence, record.content, record.hash}));
        if (!page.records.empty()) last = page.records.back().sequence;
        return {};
      });
  if (!read) return std::unexpected(read.error());
  return *std::move(builder);
}

Result<std::optional<verify::SignedHead>> read_kept(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto kept = verify::parse_signed_head(TRY(read_text_file(path, kMaxHeadBytes)));
  if (kept) return *kept;
  return fail(Errc::FileCorrupt, fmt::format("{}: {}", path, kept.error().detail));
}

std::string state_of(const SigningKeys& keys, std::size_t index) {
  if (index + 1 == keys.links.keys().size()) return "signs";
  return "replaced";
}

std::string signer_of(const SigningKeys& keys, std::size_t index) {
  if (keys.links.keys()[index].is_linked)
    return keys.links.keys()[index - 1].key.id().substr(0, 16);
  return index == 0 ? "-" : "UNLINKED";
}

Result<SigningKeys> read_signing_keys(const Dependencies& dependencies) {
  return keys_of(
      TRY(dependencies.call(wire::AuditKeyQuery::kMethod, wire::AuditKeyQuery().to_json())));
}

Result<SigningKeys> rotate_signing_key(const Dependencies& dependencies) {
  const SigningKeys before = TRY(read_signing_keys(dependencies));
  wire::AuditKeyRotate rotate;
  rotate.key = before.links.keys().back().key.id();
  return keys_of(TRY(dependencies.call(wire::AuditKeyRotate::kMethod, rotate.to_json())));
}

Json signing_keys_json(const SigningKeys& keys) {
  Json items = Json::array();
  for (std::size_t i = keys.links.keys().size(); i-- > 0;) {
    const audit::KeyLinks::Key& key = keys.links.keys()[i];
    items.push_back({{"key", key.key.text()},
                     {"id", key.key.id()},
                     {"created_unix_ms", key.created_unix_ms},
                     {"is_linked", key.is_linked},
                     {"state", state_of(keys, i)}});
  }
  return {{"log", keys.links.log()}, {"items", std::move(items)}};
}

cli::Table signing_keys_table(const SigningKeys& keys) {
  cli::Table table{.columns = {{"KEY"}, {"ID"}, {"STATE"}, {"SIGNED BY"}, {"CREATED"}}};
  for (std::size_t i = keys.links.keys().size(); i-- > 0;) {
    const audit::KeyLinks::Key& key = keys.links.keys()[i];
    table.rows.push_back({key.key.text(), key.key.id().substr(0, 16), state_of(keys, i),
                          signer_of(keys, i), cli::utc_text(key.created_unix_ms / 1000)});
  }
  return table;
}

cli::Table certificate_table(const verify::Verdict& verdict) {
  const wire::LeaseCounts& counts = verdict.head.tenant->leases;
  return {.columns = {{"RESULT"},
                      {"RECORDS", true},
                      {"LEASES", true},
                      {"ERASED", true},
                      {"OPEN", true},
                      {"HELD", true},
                      {"QUARANTINED", true}},
          .rows = {{verdict.is_complete() ? "complete" : "incomplete",
                    fmt::format("{}", verdict.records), fmt::format("{}", counts.granted),
                    fmt::format("{}", counts.erased), fmt::format("{}", counts.open),
                    fmt::format("{}", counts.held), fmt::format("{}", counts.quarantined)}}};
}

std::string rendered(const cli::Table& table, Output output) {
  return cli::render(output == Output::Wide ? table : cli::narrow(table));
}

std::string json_answer(const Json& document) {
  return cli::json_text(document, 2) + '\n';
}

}  // namespace

Result<PrintText> answer(const VerifyAudit&, Output output, const Dependencies& dependencies) {
  const AuditVerdict verdict = TRY(verify_audit(dependencies));
  return PrintText{.text = rendered(audit_table(verdict), output) + audit_notes(verdict),
                   .json = json_answer(audit_json(verdict)),
                   .exit_code = audit_exit_code(verdict)};
}

Result<PrintText> answer(const MakeCertificate& request, Output output,
                         const Dependencies& dependencies) {
  const auto kept = TRY(read_kept(request.kept_head));
  const verify::SignedHead head = TRY(read_head(request.tenant, dependencies));
  const SigningKeys keys = TRY(read_signing_keys(dependencies));
  const auto builder = TRY(read_records(request.tenant, dependencies));
  const auto certificate = TRY(builder.build({.since_unix_ms = request.since_unix_ms,
                                              .keys = keys.message.keys,
                                              .head = head,
                                              .kept = kept}));
  std::string text = certificate.text();
  const auto verdict = TRY(verify::verify(text, {.key = keys.links.keys().back().key}));
  if (request.file.empty()) return PrintText{.text = std::move(text)};
  TRY(replace_file(request.file, text, {.mode = 0644}));
  return PrintText{.text = rendered(certificate_table(verdict), output)};
}

Result<PrintText> answer(const ShowAuditHead& request, Output, const Dependencies& dependencies) {
  const verify::SignedHead head = TRY(read_head(std::nullopt, dependencies));
  std::string text = head.envelope.to_json().dump() + '\n';
  if (request.file.empty()) return PrintText{.text = std::move(text)};
  TRY(replace_file(request.file, text, {.mode = 0644}));
  return PrintText{};
}

Result<PrintText> answer(const SigningKey& request, Output output,
                         const Dependencies& dependencies) {
  const SigningKeys keys =
      TRY(request.rotate ? rotate_signing_key(dependencies) : read_signing_keys(dependencies));
  const bool is_wide = output == Output::Wide;
  return PrintText{.text = is_wide ? rendered(signing_keys_table(keys), output)
                                   : keys.links.keys().back().key.text() + '\n',
                   .json = json_answer(signing_keys_json(keys))};
}

}  // namespace leasehold::brokerctl
