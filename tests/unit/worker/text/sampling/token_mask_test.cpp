#include "worker/text/sampling/token_mask.hpp"

#include <catch2/catch.hpp>

namespace leasehold::testing {

TEST_CASE("token mask: the count is of different tokens, however often each is added or removed") {
  TokenMask mask(130);
  CHECK(mask.empty());
  for (const TokenId token : {0, 129, 129, 64}) mask.add(token);
  CHECK(mask.count() == 3);
  for (const TokenId token : {129, 129, 1}) mask.remove(token);
  CHECK(mask.count() == 2);
  mask.clear();
  CHECK(mask.empty());
  TokenMask all = TokenMask::all(130);
  CHECK(all.count() == 130);
  all.remove(128);
  CHECK(all.count() == 129);
}

}  // namespace leasehold::testing
