#include "tools/client/token_ledger.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using leasehold::tenant::TokenLedger;

TEST_CASE("token ledger: takes positions in order") {
  TokenLedger ledger;

  CHECK(ledger.take({.token = 7, .position = 0}));
  CHECK(ledger.take({.token = 8, .position = 1}));

  CHECK(ledger.tokens() == std::vector<std::int32_t>{7, 8});
}

TEST_CASE("token ledger: refuses a repetition and a gap, and keeps what it had") {
  TokenLedger ledger;
  CHECK(ledger.take({.token = 7, .position = 0}));

  CHECK(ledger.take({.token = 7, .position = 0}).error().code == Errc::MalformedMessage);
  CHECK(ledger.take({.token = 9, .position = 2}).error().code == Errc::MalformedMessage);

  CHECK(ledger.size() == 1);
}
