#include "ipc/control/tokens/audit_key.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <optional>
#include <span>

#include "common/expects.hpp"
#include "common/hex.hpp"
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

/// Returns nothing for base64 in another form, whose last digit has bits that do not count.
std::optional<std::string> strict_base64(std::string_view text) {
  auto bytes = control::from_base64(text);
  if (bytes && control::to_base64(*bytes) == text) return bytes;
  return std::nullopt;
}

/// What a signature covers. Source: DSSE v1, "PAE".
std::string signed_form(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(),
                     payload);
}

}  // namespace

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

wire::DsseEnvelope sign(std::string_view payload, const SigningKey& key) {
  wire::DsseEnvelope envelope;
  envelope.payload = control::to_base64(payload);
  envelope.payload_type = kPayloadType;
  wire::DsseSignature& signature = envelope.signatures.emplace_back();
  signature.key_id = key.public_key().id();
  signature.sig = control::to_base64(key.sign(signed_form(payload)));
  return envelope;
}

bool is_signed_by(const wire::DsseEnvelope& envelope, const PublicKey& key) {
  const auto payload = payload_of(envelope);
  if (!payload) return false;
  const std::string message = signed_form(*payload);
  const std::string id = key.id();
  return std::ranges::any_of(envelope.signatures, [&](const wire::DsseSignature& signature) {
    const auto bytes = strict_base64(signature.sig);
    return signature.key_id == id && bytes && bytes->size() == crypto_sign_BYTES &&
           ::crypto_sign_verify_detached(bytes_of(*bytes), bytes_of(message), message.size(),
                                         key.bytes.data()) == 0;
  });
}

Result<std::string> payload_of(const wire::DsseEnvelope& envelope) {
  auto payload = strict_base64(envelope.payload);
  if (payload && envelope.payload_type == kPayloadType) return *std::move(payload);
  return fail(Errc::BadRequest, "the envelope holds no in-toto statement in base64");
}

}  // namespace leasehold::audit
