#include "ipc/control/tokens/audit_key.hpp"

#include <sodium.h>

#include <catch2/catch.hpp>

#include "common/hex.hpp"

using namespace leasehold;
using audit::Envelope;
using audit::PublicKey;
using audit::SigningKey;

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
  const Envelope envelope = audit::sign("{}", key);
  REQUIRE(envelope.signatures.size() == 1);
  CHECK(envelope.signatures[0].bytes == key.sign("DSSEv1 28 application/vnd.in-toto+json 2 {}"));
  CHECK(envelope.signatures[0].key_id == key.public_key().id());
  CHECK(is_signed_by(envelope, key.public_key()));
  CHECK_FALSE(is_signed_by(envelope, SigningKey::create().public_key()));
}

TEST_CASE("audit key: a second signature may stand beside the first") {
  const SigningKey first = known_key();
  const SigningKey second = SigningKey::create();
  Envelope envelope = audit::sign("{}", first);
  envelope.signatures.push_back(audit::sign("{}", second).signatures.front());
  const auto read = Envelope::from_text(envelope.text());
  REQUIRE(read.has_value());
  CHECK(is_signed_by(*read, first.public_key()));
  CHECK(is_signed_by(*read, second.public_key()));
}

TEST_CASE(
    "audit key: each flipped bit of an envelope's text is refused or has no valid signature") {
  const SigningKey key = known_key();
  const std::string text = audit::sign(R"({"a":1})", key).text();
  CHECK(Envelope::from_text(text)->text() == text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      const auto read = Envelope::from_text(other);
      CAPTURE(at, bit);
      CHECK_FALSE((read && is_signed_by(*read, key.public_key())));
    }
  }
}

TEST_CASE("audit key: an envelope in another form of the same JSON is refused") {
  const std::string text = audit::sign("{}", known_key()).text();
  for (const std::string& other :
       {" " + text, text + "\n", text.substr(0, text.size() - 1), "{\"a\":1," + text.substr(1),
        std::string("{}"), std::string("[]"), std::string()}) {
    CAPTURE(other);
    CHECK_FALSE(Envelope::from_text(other).has_value());
  }
}
