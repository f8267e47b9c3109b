#include "ipc/control/tokens/audit_key.hpp"

#include <sodium.h>

#include <catch2/catch.hpp>

#include "common/hex.hpp"
#include "ipc/control/transport/base64.hpp"

using namespace leasehold;
using audit::PublicKey;
using audit::SigningKey;
using wire::DsseEnvelope;

namespace {

// RFC 8032, section 7.1, test 1.
constexpr const char* kSecret = "ed25519-secret:nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
constexpr const char* kPublic = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

SigningKey known_key() {
  auto key = SigningKey::from_secret_text(kSecret);
  REQUIRE(key.has_value());
  return *key;
}

}  // namespace

TEST_CASE("audit key: keys and signatures are those of RFC 8032") {
  const SigningKey key = known_key();
  CHECK(key.public_key().text() == kPublic);
  CHECK(key.secret_text() == kSecret);
  const std::string signature = key.sign("");
  const std::vector<std::uint8_t> bytes(signature.begin(), signature.end());
  CHECK(to_hex(bytes) ==
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701c"
        "f9b"
        "46bd25bf5f0595bbe24655141438e7a100b");
}

TEST_CASE("audit key: a public key is read back from its text, and no other text is accepted") {
  CHECK(PublicKey::from_text(kPublic)->text() == kPublic);
  const std::string text = kPublic;
  for (const std::string& other :
       {std::string(), text + "\n", text.substr(8), "ed25519:" + text, text.substr(0, 51),
        std::string("ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURp="),
        std::string(kSecret)}) {
    CAPTURE(other);
    const auto key = PublicKey::from_text(other);
    REQUIRE_FALSE(key.has_value());
    CHECK(key.error().code == Errc::BadRequest);
  }
}

TEST_CASE("audit key: new keys differ, and an error about a secret does not show it") {
  CHECK(SigningKey::create().secret_text() != SigningKey::create().secret_text());
  const auto refused = SigningKey::from_secret_text(std::string(kSecret).substr(0, 40));
  REQUIRE_FALSE(refused.has_value());
  CHECK_FALSE(refused.error().detail.contains("nWGxne"));
}

TEST_CASE("audit key: an envelope's signature covers the type and the payload, as DSSE says") {
  const SigningKey key = known_key();
  const DsseEnvelope envelope = audit::sign("{}", key);
  REQUIRE(envelope.signatures.size() == 1);
  CHECK(control::from_base64(envelope.signatures[0].sig) ==
        key.sign("DSSEv1 28 application/vnd.in-toto+json 2 {}"));
  CHECK(envelope.signatures[0].key_id == key.public_key().id());
  CHECK(audit::payload_of(envelope) == "{}");
  CHECK(is_signed_by(envelope, key.public_key()));
  CHECK_FALSE(is_signed_by(envelope, SigningKey::create().public_key()));
}

TEST_CASE("audit key: a second signature may stand beside the first") {
  const SigningKey first = known_key();
  const SigningKey second = SigningKey::create();
  DsseEnvelope envelope = audit::sign("{}", first);
  envelope.signatures.push_back(audit::sign("{}", second).signatures.front());
  CHECK(is_signed_by(envelope, first.public_key()));
  CHECK(is_signed_by(envelope, second.public_key()));
}

TEST_CASE("audit key: an envelope with any flipped bit has no valid signature") {
  const SigningKey key = known_key();
  const DsseEnvelope sound = audit::sign(R"({"a":1})", key);
  const auto check_flips = [&](auto field) {
    for (std::size_t bit = 0; bit < 8 * field(sound).size(); ++bit) {
      DsseEnvelope other = sound;
      char& byte = const_cast<std::string&>(field(other))[bit / 8];
      byte = static_cast<char>(byte ^ (1 << bit % 8));
      CAPTURE(bit);
      CHECK_FALSE(is_signed_by(other, key.public_key()));
    }
  };
  using Field = const std::string&;
  check_flips([](const DsseEnvelope& each) -> Field { return each.payload; });
  check_flips([](const DsseEnvelope& each) -> Field { return each.payload_type; });
  check_flips([](const DsseEnvelope& each) -> Field { return each.signatures[0].key_id; });
  check_flips([](const DsseEnvelope& each) -> Field { return each.signatures[0].sig; });
}
