#include "ipc/control/tokens/audit_key.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "common/expects.hpp"
#include "common/hex.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/transport/base64.hpp"

namespace leasehold::audit {
namespace {

static_assert(std::tuple_size_v<decltype(PublicKey::bytes)> == crypto_sign_PUBLICKEYBYTES);

constexpr std::string_view kPublicPrefix = "ed25519:";
constexpr std::string_view kSecretPrefix = "ed25519-secret:";
using Seed = std::array<std::uint8_t, crypto_sign_SEEDBYTES>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Decodes `prefix` and the base64 of exactly `out`. Returns false for any other text.
bool decode(std::string_view text, std::string_view prefix, std::span<std::uint8_t> out) {
  if (!text.starts_with(prefix)) return false;
  auto bytes = control::from_base64(text.substr(prefix.size()));
  if (!bytes || bytes->size() != out.size()) return false;
  std::ranges::copy(*bytes, out.begin());
  ::sodium_memzero(bytes->data(), bytes->size());
  return true;
}

/// What a signature covers. Source: DSSE v1, "PAE".
std::string signed_form(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", Envelope::kPayloadType.size(), Envelope::kPayloadType,
                     payload.size(), payload);
}

/// An envelope as it is in JSON: bytes are base64.
struct EnvelopeText {
  std::string payload;
  std::string type{Envelope::kPayloadType};
  std::vector<Signature> signatures;
};
void describe(Is<EnvelopeText> auto& m, auto& fields) {
  fields.field("payload", m.payload);
  fields.field("payloadType", m.type);
  fields.field("signatures", m.signatures, MaxItems{16});
}

}  // namespace

void describe(Is<Signature> auto& m, auto& fields) {
  fields.field("keyid", m.key_id, TextRule::HexKey);
  fields.field("sig", m.bytes);
}

std::string PublicKey::text() const {
  return std::string(kPublicPrefix) + control::to_base64(text_of(bytes));
}

std::string PublicKey::id() const {
  std::array<std::uint8_t, crypto_hash_sha256_BYTES> hash{};
  ::crypto_hash_sha256(hash.data(), bytes.data(), bytes.size());
  return to_hex(hash);
}

Result<PublicKey> PublicKey::from_text(std::string_view text) {
  PublicKey key;
  if (decode(text, kPublicPrefix, key.bytes) && key.text() == text) return key;
  return fail(Errc::BadRequest,
              fmt::format("a public key is `ed25519:` and 44 characters, as `brokerctl audit key` "
                          "prints it; got a text of {} bytes",
                          text.size()));
}

SigningKey SigningKey::create() {
  ensures(::sodium_init() >= 0, "libsodium starts");
  SigningKey key;
  PublicKey public_key;
  ::crypto_sign_keypair(public_key.bytes.data(), key.bytes_.data());
  return key;
}

Result<SigningKey> SigningKey::from_secret_text(std::string_view text) {
  SigningKey key;
  Seed seed{};
  // The text is not shown, because it may be most of a secret.
  if (!decode(text, kSecretPrefix, seed))
    return fail(Errc::BadRequest, "the text is not a secret key that a broker wrote");
  PublicKey public_key;
  ::crypto_sign_seed_keypair(public_key.bytes.data(), key.bytes_.data(), seed.data());
  ::sodium_memzero(seed.data(), seed.size());
  return key;
}

SigningKey::~SigningKey() {
  ::sodium_memzero(bytes_.data(), bytes_.size());
}

std::string SigningKey::secret_text() const {
  return std::string(kSecretPrefix) +
         control::to_base64(text_of(std::span(bytes_).first<crypto_sign_SEEDBYTES>()));
}

PublicKey SigningKey::public_key() const {
  PublicKey key;
  ::crypto_sign_ed25519_sk_to_pk(key.bytes.data(), bytes_.data());
  return key;
}

std::string SigningKey::sign(std::string_view message) const {
  std::string signature(crypto_sign_BYTES, '\0');
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                         bytes_of(message), message.size(), bytes_.data());
  return signature;
}

std::string Envelope::text() const {
  EnvelopeText text{.payload = control::to_base64(payload), .signatures = signatures};
  for (Signature& signature : text.signatures)
    signature.bytes = control::to_base64(signature.bytes);
  return to_field(text).dump();
}

Result<Envelope> Envelope::from_text(std::string_view text) {
  const auto refuse = [] {
    return fail(Errc::BadRequest, "the text is not a signed envelope in its canonical form");
  };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return refuse();
  auto parts = TRY(read_fields<EnvelopeText>(json));
  auto payload = control::from_base64(parts.payload);
  if (!payload) return refuse();
  Envelope envelope{.payload = *std::move(payload), .signatures = std::move(parts.signatures)};
  for (Signature& signature : envelope.signatures) {
    auto bytes = control::from_base64(signature.bytes);
    if (!bytes) return refuse();
    signature.bytes = *std::move(bytes);
  }
  // Catches other members, another type of payload, and other forms of base64 and JSON.
  if (envelope.text() != text) return refuse();
  return envelope;
}

Envelope sign(std::string payload, const SigningKey& key) {
  Envelope envelope;
  envelope.payload = std::move(payload);
  envelope.signatures.push_back(
      {.key_id = key.public_key().id(), .bytes = key.sign(signed_form(envelope.payload))});
  return envelope;
}

bool is_signed_by(const Envelope& envelope, const PublicKey& key) {
  const std::string message = signed_form(envelope.payload);
  const std::string id = key.id();
  return std::ranges::any_of(envelope.signatures, [&](const Signature& signature) {
    return signature.key_id == id && signature.bytes.size() == crypto_sign_BYTES &&
           ::crypto_sign_verify_detached(bytes_of(signature.bytes), bytes_of(message),
                                         message.size(), key.bytes.data()) == 0;
  });
}

}  // namespace leasehold::audit
