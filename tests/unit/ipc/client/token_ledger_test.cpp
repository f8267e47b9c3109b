#include "ipc/client/token_ledger.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using leasehold::client::TokenLedger;

TEST_CASE("token ledger: it accepts positions in order") {
  TokenLedger ledger;

  CHECK(ledger.take({.token = 7, .position = 0}));
  CHECK(ledger.take({.token = 8, .position = 1}));

  CHECK(ledger.tokens() == std::vector<std::int32_t>{7, 8});
}

TEST_CASE("token ledger: a repetition or a gap is an error and changes nothing") {
  TokenLedger ledger;
  CHECK(ledger.take({.token = 7, .position = 0}));

  CHECK(ledger.take({.token = 7, .position = 0}).error().code == Errc::MalformedMessage);
  CHECK(ledger.take({.token = 9, .position = 2}).error().code == Errc::MalformedMessage);

  CHECK(ledger.size() == 1);
}
