#include "ipc/control/tokens/lease_token.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

const TokenKey kBrokerKey = [] {
  TokenKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  return key;
}();

const TokenKey kWorkerKey = derive_worker_key(kBrokerKey, WorkerId{2}, 5);
const LeaseClaim kClaim{LeaseId{17, 4}, TenantId{"acme:gold"}};

void check_refused(const TokenKey& key, std::string_view token) {
  CAPTURE(token);
  const auto claim = verify_token(key, token);
  REQUIRE_FALSE(claim);
  CHECK(claim.error().code == Errc::BadToken);
}

}  // namespace

TEST_CASE("lease token: the worker it was minted for accepts it") {
  CHECK(verify_token(kWorkerKey, mint_token(kWorkerKey, kClaim)) == kClaim);
}

TEST_CASE("lease token: its format is v1, lease, tenant and 64 hex digits") {
  const std::string token = mint_token(kWorkerKey, kClaim);
  CHECK(token.starts_with("v1:17.4:acme:gold:"));
  CHECK(token.size() == std::string("v1:17.4:acme:gold:").size() + 64);
}

TEST_CASE("lease token: a token with a changed, added or missing byte is refused") {
  const std::string token = mint_token(kWorkerKey, kClaim);
  for (std::size_t i = 0; i < token.size(); ++i) {
    for (const char flip : {'\x01', '\x20', '\x80'}) {
      std::string tampered = token;
      tampered[i] = static_cast<char>(tampered[i] ^ flip);
      check_refused(kWorkerKey, tampered);
    }
    check_refused(kWorkerKey, token.substr(0, i));
    check_refused(kWorkerKey, token.substr(i + 1));
  }
  check_refused(kWorkerKey, token + "0");
  check_refused(kWorkerKey, std::string(1 << 20, 'a'));
}

TEST_CASE("lease token: keys of another worker, attachment or broker refuse it") {
  const std::string token = mint_token(kWorkerKey, kClaim);
  check_refused(derive_worker_key(kBrokerKey, WorkerId{3}, 5), token);
  check_refused(derive_worker_key(kBrokerKey, WorkerId{2}, 6), token);
  check_refused(derive_worker_key(kBrokerKey, WorkerId{5}, 2), token);
  check_refused(derive_worker_key(random_token_key(), WorkerId{2}, 5), token);
  check_refused(kBrokerKey, token);
}

TEST_CASE("lease token: a MAC is not valid for another tenant or lease") {
  const std::string token = mint_token(kWorkerKey, kClaim);
  const std::string mac = token.substr(token.size() - 64);
  check_refused(kWorkerKey, "v1:17.4:acme:" + mac);
  check_refused(kWorkerKey, "v1:17.4:other:" + mac);
  check_refused(kWorkerKey, "v1:17.5:acme:gold:" + mac);
  check_refused(kWorkerKey, "v2:17.4:acme:gold:" + mac);
}

// Expected values from Python's hashlib.blake2b and hmac (SHA-512, truncated to 256 bits).
TEST_CASE("lease token: key derivation and MAC match an independent implementation") {
  CHECK(to_hex(kWorkerKey) == "17906ff6f967982d5507be932ce2b92e1cfc2e0c2533f3738d8da071a374445e");
  CHECK(mint_token(kWorkerKey, kClaim) ==
        "v1:17.4:acme:gold:1430d84449c722b84ddca12b74e16fe19d15ec48f7a0d1b34c2738988bce164a");
}

TEST_CASE("lease token: a key is read back from hex, other text is refused") {
  CHECK(token_key_from_hex(to_hex(kBrokerKey)) == kBrokerKey);
  const std::string digits = to_hex(kBrokerKey);
  for (const std::string& bad : {std::string(), digits.substr(2), digits + "00",
                                 "zz" + digits.substr(2), digits.substr(1)}) {
    CAPTURE(bad);
    const auto key = token_key_from_hex(bad);
    REQUIRE_FALSE(key);
    CHECK(key.error().code == Errc::BadRequest);
  }
  CHECK(random_token_key() != random_token_key());
}
