#include "ipc/control/tokens/erasure_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/hex.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/transport/base64.hpp"
#include "ipc/control/transport/excess.hpp"

namespace leasehold::audit {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "urn:leasehold:erasure-certificate:1";
/// A certificate has 8 levels, and its size limits the values. The JSON library frees values
/// recursively.
constexpr control::Limits kLimits{.max_depth = 16, .max_values = ErasureCertificate::kMaxBytes};

/// A proof or a hash as it is in JSON.
struct KeptText {
  std::uint64_t size = 0;
  std::string root;
  std::string proof;
};
struct CertificateText {
  std::string format;
  std::string proof;
  std::optional<KeptText> kept;
};

void describe(Is<KeptText> auto& m, auto& fields) {
  fields.field("proof", m.proof);
  fields.field("root", m.root, TextRule::HexKey);
  fields.field("size", m.size);
}

void describe(Is<CertificateText> auto& m, auto& fields) {
  fields.field("format", m.format);
  fields.field("kept", m.kept);
  fields.field("proof", m.proof);
}

std::string proof_text(const Proof& proof) {
  std::string bytes;
  bytes.reserve(proof.size() * sizeof(Hash));
  for (const Hash& hash : proof) bytes.append(hash.begin(), hash.end());
  return control::to_base64(bytes);
}

std::optional<Proof> parse_proof(std::string_view text) {
  const auto bytes = control::from_base64(text);
  if (!bytes || bytes->size() % sizeof(Hash) != 0) return std::nullopt;
  Proof proof(bytes->size() / sizeof(Hash));
  for (std::size_t i = 0; i < proof.size(); ++i)
    std::copy_n(bytes->begin() + static_cast<std::ptrdiff_t>(i * sizeof(Hash)), sizeof(Hash),
                proof[i].begin());
  return proof;
}

std::unexpected<Error> refuse(std::string_view why) {
  return fail(Errc::FileCorrupt, fmt::format("the file is not a certificate: {}", why));
}

Result<std::vector<wire::DsseEnvelope>> parse_keys(const json& keys) {
  std::vector<wire::DsseEnvelope> parsed;
  for (const json& key : keys) parsed.push_back(TRY(wire::DsseEnvelope::from_json(key)));
  return parsed;
}

Result<std::vector<CertifiedRecord>> parse_records(json& records, std::vector<json>& objects) {
  std::vector<CertifiedRecord> parsed;
  parsed.reserve(records.size());
  objects.reserve(records.size());
  for (json& each : records) {
    CertifiedRecord& record = parsed.emplace_back();
    FieldReader fields(each);
    fields.field("leaf", record.leaf);
    const auto object = each.find("record");
    if (fields.error() || object == each.end() || !object->is_object())
      return refuse(fmt::format("entry {} of \"records\" is not a record", parsed.size()));
    record.content = object->dump();
    objects.push_back(std::move(*object));
  }
  return parsed;
}

/// Reads a parsed certificate; whatever it does not read is found when the text is compared. Moves
/// the records into `objects`.
Result<ErasureCertificate> read_certificate(json& object, std::vector<json>& objects) {
  auto text = read_fields<CertificateText>(object);
  if (!text) return refuse(text.error().detail);
  if (text->format != kFormat)
    return refuse(
        fmt::format("its format is \"{}\", this program reads {}", text->format, kFormat));
  for (const char* name : {"keys", "records"}) {
    if (!object.contains(name) || !object[name].is_array())
      return refuse(fmt::format("it has no list \"{}\"", name));
  }
  ErasureCertificate certificate;
  auto head = wire::DsseEnvelope::from_json(object.value("head", json()));
  auto keys = parse_keys(object["keys"]);
  if (!head || !keys) return refuse("it has no signed head, or no signed keys");
  certificate.head = *std::move(head);
  certificate.keys = *std::move(keys);
  certificate.records = TRY(parse_records(object["records"], objects));
  auto proof = parse_proof(text->proof);
  if (!proof) return refuse("\"proof\" is not base64 of hashes");
  certificate.proof = *std::move(proof);
  if (!text->kept) return certificate;
  auto kept_proof = parse_proof(text->kept->proof);
  const auto root = hash_from_hex(text->kept->root);
  if (!kept_proof || !root) return refuse("\"kept\" has no proof");
  certificate.kept = {.tree = {.size = text->kept->size, .hash = *root},
                      .proof = *std::move(kept_proof)};
  return certificate;
}

}  // namespace

std::string ErasureCertificate::text() const {
  std::string text = R"({"format":)" + json(kFormat).dump() + R"(,"head":)" + head.to_json().dump();
  if (kept) {
    const KeptText parts{
        .size = kept->tree.size, .root = to_hex(kept->tree.hash), .proof = proof_text(kept->proof)};
    text += R"(,"kept":)" + to_field(parts).dump();
  }
  text += R"(,"keys":[)";
  for (const wire::DsseEnvelope& key : keys) {
    if (&key != keys.data()) text += ',';
    text += key.to_json().dump();
  }
  text += R"(],"proof":")" + proof_text(proof) + R"(","records":[)";
  for (const CertifiedRecord& record : records) {
    if (&record != records.data()) text += ',';
    text += fmt::format(R"({{"leaf":{},"record":{}}})", record.leaf, record.content);
  }
  return text + "]}\n";
}

Result<ErasureCertificate> ErasureCertificate::from_text(std::string_view text,
                                                         std::vector<json>& objects) {
  if (const auto excess = control::exceeded_limit(text, kLimits))
    return refuse("it has " + *excess);
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return refuse("it is not a JSON object");
  auto certificate = TRY(read_certificate(object, objects));
  const std::string canonical = certificate.text();
  const auto [at, other] = std::ranges::mismatch(text, canonical);
  if (at == text.end() && other == canonical.end()) return certificate;
  return refuse(fmt::format("byte {} is not as the broker's tools write it", at - text.begin()));
}

}  // namespace leasehold::audit
