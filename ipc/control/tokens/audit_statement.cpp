#include "ipc/control/tokens/audit_statement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ipc/control/messages/json_fields.hpp"

namespace leasehold::audit {
namespace {

using nlohmann::json;

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr const char* kHeadType = "urn:leasehold:audit-head:1";
constexpr const char* kKeyType = "urn:leasehold:audit-key:1";

json subject(const std::string& name, const std::string& sha256) {
  return {{"name", name}, {"digest", {{"sha256", sha256}}}};
}

std::string statement(const char* type, json subjects, json predicate) {
  return json{{"_type", kStatementType},
              {"subject", std::move(subjects)},
              {"predicateType", type},
              {"predicate", std::move(predicate)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Parses the predicate and rejects a text that differs from what the statement would be written
/// as. So the subject and the types are checked too.
template <class Statement>
Result<Statement> parse(std::string_view payload, const char* what) {
  const auto refuse = [&] {
    return fail(Errc::BadRequest, fmt::format("the signed text is not {}", what));
  };
  const json object = json::parse(payload, nullptr, false);
  if (!object.is_object() || !object.contains("predicate")) return refuse();
  auto parsed = TRY(read_fields<Statement>(object["predicate"]));
  if (payload_of(parsed) != payload) return refuse();
  return parsed;
}

}  // namespace

void describe(Is<LeaseCounts> auto& m, auto& fields) {
  fields.field("granted", m.granted);
  fields.field("erased", m.erased);
  fields.field("open", m.open);
  fields.field("held", m.held);
  fields.field("quarantined", m.quarantined);
}

void describe(Is<TenantHead> auto& m, auto& fields) {
  fields.field("tenant", m.tenant, TextRule::NameOrEmpty);
  fields.field("records", m.records);
  fields.field("newest_hash", m.newest_hash, TextRule::HexKey);
  fields.field("newest_unix_ms", m.newest_unix_ms);
  fields.field("leases", m.leases);
}

void describe(Is<AuditGap> auto& m, auto& fields) {
  fields.field("since_unix_ms", m.since_unix_ms);
  fields.field("until_unix_ms", m.until_unix_ms);
  fields.field("granted", m.granted);
  fields.field("erased", m.erased);
}

void describe(Is<HeadStatement> auto& m, auto& fields) {
  fields.field("log", m.log, TextRule::HexKey);
  fields.field("tree_size", m.tree_size);
  fields.field("root", m.root, TextRule::HexKey);
  fields.field("newest_sequence", m.newest_sequence);
  fields.field("newest_hash", m.newest_hash, TextRule::HexKey);
  fields.field("removed_size", m.removed_size);
  fields.field("removed_sequence", m.removed_sequence);
  fields.field("first_kept_unix_ms", m.first_kept_unix_ms);
  fields.field("signed_unix_ms", m.signed_unix_ms);
  fields.field("gaps", m.gaps);
  fields.field("tenant", m.tenant);
}

void describe(Is<KeyStatement> auto& m, auto& fields) {
  fields.field("log", m.log, TextRule::HexKey);
  fields.field("number", m.number);
  fields.field("key", m.key);
  fields.field("previous", m.previous);
  fields.field("created_unix_ms", m.created_unix_ms);
}

std::string payload_of(const HeadStatement& head) {
  json subjects = json::array({subject("audit chain of " + head.log, head.root)});
  if (head.tenant)
    subjects.push_back(subject("leases of " + head.tenant->tenant, head.tenant->newest_hash));
  return statement(kHeadType, std::move(subjects), to_field(head));
}

std::string payload_of(const KeyStatement& key) {
  const auto parsed = PublicKey::from_text(key.key);
  json subjects = json::array({subject(fmt::format("key {} of audit chain {}", key.number, key.log),
                                       parsed ? parsed->id() : std::string())});
  return statement(kKeyType, std::move(subjects), to_field(key));
}

Result<HeadStatement> parse_head(std::string_view payload) {
  return parse<HeadStatement>(payload, "the head of an audit chain");
}

Result<KeyStatement> parse_key(std::string_view payload) {
  return parse<KeyStatement>(payload, "a key of an audit chain");
}

Envelope introduce(const SigningKey& key, const SigningKey* before, std::uint64_t number,
                   const std::string& log, std::int64_t now_unix_ms) {
  const PublicKey public_key = key.public_key();
  KeyStatement introduced{.log = log.empty() ? public_key.id() : log,
                          .number = number,
                          .key = public_key.text(),
                          .created_unix_ms = now_unix_ms};
  if (before != nullptr) introduced.previous = before->public_key().text();
  return sign(payload_of(introduced), before != nullptr ? *before : key);
}

Result<KeyLinks> KeyLinks::check(const std::vector<Envelope>& envelopes) {
  KeyLinks links;
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::FileCorrupt,
                fmt::format("key {} of the audit chain {}", links.keys_.size() + 1, why));
  };
  for (const Envelope& envelope : envelopes) {
    const auto stated = parse_key(envelope.payload);
    if (!stated) return refuse("is not introduced by a statement about a key");
    const auto key = PublicKey::from_text(stated->key);
    if (!key) return refuse("is not a public key");
    const bool is_linked = !stated->previous.empty();
    if (is_linked && (links.keys_.empty() || links.keys_.back().key.text() != stated->previous))
      return refuse("names another key as the one before it");
    if (!is_signed_by(envelope, is_linked ? links.keys_.back().key : *key))
      return refuse("has no valid signature");
    links.keys_.push_back({*key, is_linked, stated->created_unix_ms});
    if (stated->number != links.keys_.size() || stated->log != links.log()) {
      links.keys_.pop_back();
      return refuse("is a key of another chain, or not in its place");
    }
  }
  if (links.keys_.empty()) return refuse("is missing");
  return links;
}

bool KeyLinks::leads(const PublicKey& trusted, const PublicKey& signer) const {
  auto key = std::ranges::find(keys_, trusted, &Key::key);
  if (key == keys_.end()) return false;
  // Only keys that the trusted one vouches for, directly or through others.
  do {
    if (key->key == signer) return true;
    ++key;
  } while (key != keys_.end() && key->is_linked);
  return false;
}

}  // namespace leasehold::audit
