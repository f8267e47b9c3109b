#include "ipc/control/tokens/audit_statement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  auto parsed = TRY(Statement::from_json(object["predicate"]));
  if (payload_of(parsed) != payload) return refuse();
  return parsed;
}

}  // namespace

std::string payload_of(const wire::AuditHead& head) {
  json subjects = json::array({subject("audit chain of " + head.log, head.root)});
  if (head.tenant)
    subjects.push_back(subject("leases of " + head.tenant->tenant, head.tenant->hash));
  return statement(kHeadType, std::move(subjects), head.to_json());
}

std::string payload_of(const wire::AuditKey& key) {
  return statement(kKeyType, json::array({subject("key of an audit chain", key.id)}),
                   key.to_json());
}

Result<wire::AuditHead> parse_head(std::string_view payload) {
  return parse<wire::AuditHead>(payload, "the head of an audit chain");
}

Result<wire::AuditKey> parse_key(std::string_view payload) {
  return parse<wire::AuditKey>(payload, "a key of an audit chain");
}

wire::DsseEnvelope introduce(const SigningKey& key, const SigningKey* before,
                             std::int64_t created_unix_ms) {
  const PublicKey public_key = key.public_key();
  wire::AuditKey introduced;
  introduced.id = public_key.id();
  introduced.key = public_key.text();
  introduced.created_unix_ms = created_unix_ms;
  if (before != nullptr) introduced.previous = before->public_key().id();
  return sign(payload_of(introduced), before != nullptr ? *before : key);
}

Result<KeyLinks> KeyLinks::check(const std::vector<wire::DsseEnvelope>& envelopes) {
  KeyLinks links;
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::FileCorrupt,
                fmt::format("key {} of the audit chain {}", links.keys_.size() + 1, why));
  };
  for (const wire::DsseEnvelope& envelope : envelopes) {
    const auto payload = payload_of(envelope);
    const auto stated = parse_key(payload ? *payload : std::string());
    if (!stated) return refuse("is not introduced by a statement about a key");
    const auto key = PublicKey::from_text(stated->key);
    if (!key || key->id() != stated->id) return refuse("is not a public key with its id");
    const bool is_linked = !stated->previous.empty();
    if (is_linked && (links.keys_.empty() || links.keys_.back().key.id() != stated->previous))
      return refuse("names another key as the one before it");
    if (!is_signed_by(envelope, is_linked ? links.keys_.back().key : *key))
      return refuse("has no valid signature");
    links.keys_.push_back(
        {.key = *key, .is_linked = is_linked, .created_unix_ms = stated->created_unix_ms});
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
