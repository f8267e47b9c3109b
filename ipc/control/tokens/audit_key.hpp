/// The keys that sign the audit chain's heads, and signatures in envelopes.
///
/// Ed25519 by libsodium, which rejects a second encoding of a valid signature. An envelope is that
/// of DSSE v1: it signs the type of its payload together with the payload, and holds a list of
/// signatures, so that a second party can add one.
/// Pure, except `SigningKey::create`. Threads: any. Sources: RFC 8032; DSSE v1 (Dead Simple Signing
/// Envelope), protocol and envelope.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/control/messages/audit.hpp"

namespace leasehold::audit {

/// Text: `ed25519:` and base64.
struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  std::string text() const;
  /// 64 hex digits: the SHA-256 of the bytes.
  std::string id() const;
  /// The inverse of `text`. Errors: BadRequest.
  static Result<PublicKey> from_text(std::string_view text);
  bool operator==(const PublicKey&) const = default;
};

/// A secret key. The memory is zeroed when the object ends.
class SigningKey {
 public:
  /// A new random key.
  static SigningKey create();
  /// The inverse of `secret_text`. Errors: BadRequest, without the text.
  static Result<SigningKey> from_secret_text(std::string_view text);
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();

  /// For a file that only the owner can read: `ed25519-secret:` and base64.
  std::string secret_text() const;
  PublicKey public_key() const;
  /// 64 bytes.
  std::string sign(std::string_view message) const;

 private:
  SigningKey() = default;
  std::array<std::uint8_t, 64> bytes_{};  // libsodium's form: seed and public key
};

inline constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";

/// An envelope with one signature. `payload`: an in-toto statement.
wire::DsseEnvelope sign(std::string_view payload, const SigningKey& key);
/// True if a signature that names this key is valid.
bool is_signed_by(const wire::DsseEnvelope& envelope, const PublicKey& key);
/// The statement in the envelope. Errors: BadRequest for base64 or a type other than `sign` writes.
Result<std::string> payload_of(const wire::DsseEnvelope& envelope);

}  // namespace leasehold::audit
