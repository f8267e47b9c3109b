#include "broker/journal/audit_signer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "broker/journal/state_file.hpp"
#include "broker/journal/trusted_time.hpp"
#include "common/unix_time.hpp"

namespace leasehold::journal {
namespace {

/// A statement takes about 900 bytes. All of them must fit into the file and into a reply.
constexpr std::size_t kMaxKeyFileBytes = 1 << 20;
constexpr std::size_t kMaxKeys = 1000;

std::string file_text(const audit::SigningKey& key, const std::vector<wire::DsseEnvelope>& links) {
  wire::AuditKeys keys;
  keys.keys = links;
  nlohmann::json object = keys.to_json();
  object["secret"] = key.secret_text();
  return object.dump() + "\n";
}

wire::AuditKey introduced_by(const wire::DsseEnvelope& link) {
  return audit::parse_key(audit::payload_of(link).value()).value();
}

}  // namespace

Result<AuditSigner> AuditSigner::open(const std::string& state_dir,
                                      std::vector<wire::DsseEnvelope> known) {
  AuditSigner signer(state_dir + "/audit-key", std::move(known));
  const auto text = TRY(read_secret_file(signer.path_, kMaxKeyFileBytes));
  if (text) TRY(signer.load(*text));
  return signer;
}

Result<void> AuditSigner::load(const std::string& text) {
  const auto refuse = [this](std::string_view why) {
    return fail(Errc::FileCorrupt,
                fmt::format("{} {}; restore it from a backup, or remove it to sign with a new key "
                            "that the old one does not vouch for",
                            path_, why));
  };
  const auto object = nlohmann::json::parse(text, nullptr, false);
  const auto secret = object.is_object() ? object.find("secret") : object.end();
  if (secret == object.end() || !secret->is_string()) return refuse("holds no key");
  const auto key = audit::SigningKey::from_secret_text(secret->get<std::string>());
  const auto keys = wire::AuditKeys::from_json(object);
  if (!key || !keys) return refuse("holds no key");
  const auto links = audit::KeyLinks::check(keys->keys);
  if (!links) return refuse("holds statements that are not about its keys");
  if (links->keys().back().key != key->public_key()) return refuse("introduces another key");
  if (keys->keys.size() < links_.size()) return refuse("lacks keys that the journal names");
  key_ = *key;
  links_ = keys->keys;
  return {};
}

Result<void> AuditSigner::create_if_missing() {
  if (key_) return {};
  return store(audit::SigningKey::create(), nullptr);
}

Result<void> AuditSigner::rotate() {
  if (links_.size() >= kMaxKeys) {
    return fail(Errc::BadRequest,
                fmt::format("the audit chain has had {} keys, the most that it can have; keep the "
                            "newest one",
                            links_.size()));
  }
  return store(audit::SigningKey::create(), &*key_);
}

Result<void> AuditSigner::store(const audit::SigningKey& key, const audit::SigningKey* before) {
  std::vector<wire::DsseEnvelope> links = links_;
  links.push_back(audit::introduce(key, before, unix_time_ms()));
  TRY(write_state_file(path_, [&](const auto&) { return file_text(key, links); }));
  key_ = key;
  links_ = std::move(links);
  return {};
}

wire::DsseEnvelope AuditSigner::sign(wire::AuditHead head) const {
  head.log = introduced_by(links_.front()).id;
  return audit::sign(audit::payload_of(head), *key_);
}

wire::AuditKey AuditSigner::newest() const {
  return introduced_by(links_.back());
}

}  // namespace leasehold::journal
