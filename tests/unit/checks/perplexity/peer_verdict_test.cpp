#include "tests/checks/perplexity/peer_divergence.hpp"

#include <catch2/catch.hpp>

#include "tests/checks/perplexity/token_odds.hpp"

namespace leasehold {
namespace {

FileDivergence compared(double peer, double ours) {
  return {.file = "m",
          .positions = 10,
          .peer = peer,
          .ours = ours,
          .ours_exact = ours,
          .difference_error = peer / 4};
}

bool all_pass(std::vector<FileDivergence> files) {
  return passes({.version = "v", .files = std::move(files)});
}

FileDivergence failed() {
  return {.file = "lost", .error = Error{Errc::BadRequest, "it is too short"}};
}

}  // namespace

TEST_CASE("peer verdict: a file is within 1.1 times the peer's divergence") {
  CHECK(is_within(compared(1e-3, 1.1e-3)));
  CHECK_FALSE(is_within(compared(1e-3, 1.101e-3)));
  CHECK_FALSE(is_within(failed()));
}

TEST_CASE("peer verdict: below the floor, the floor replaces the peer's divergence") {
  CHECK(is_within(compared(0, kCodeFloorNats)));
  CHECK(is_within(compared(-1e-9, 1e-9)));
  CHECK_FALSE(is_within(compared(0, 1.2 * kCodeFloorNats)));
  CHECK(all_pass({compared(0, 0.9 * kCodeFloorNats)}));
}

TEST_CASE("peer verdict: over all files, ours is at most the peer's") {
  CHECK(all_pass({compared(1e-3, 1.05e-3), compared(2e-3, 1.9e-3)}));
  CHECK_FALSE(all_pass({compared(1e-3, 1.05e-3), compared(2e-3, 1.96e-3)}));
  CHECK_FALSE(all_pass({compared(1e-3, 1.2e-3), compared(9e-3, 1e-3)}));
  CHECK_FALSE(all_pass({compared(1e-3, 1e-4), failed()}));
  CHECK_FALSE(all_pass({}));
}

TEST_CASE("peer verdict: the mean weighs each compared file once") {
  const MeanDivergence mean =
      mean_of({.version = "v", .files = {compared(1, 2), failed(), compared(3, 6)}});
  CHECK(mean.files == 2);
  CHECK(mean.peer == 2);
  CHECK(mean.ours == 4);
}

TEST_CASE("peer verdict: the table has each file, the mean, what was compared and what failed") {
  const PeerDivergence measured{.version = "fake 7",
                                .files = {compared(1e-3, 2e-3), compared(0, 0), failed()}};
  const std::string text = divergence_text({.window = 64}, measured);
  CAPTURE(text);
  for (const char* part : {"1.000e-03  2.000e-03", "2.000 ± 0.250", "BEYOND", "not compared",
                           "mean of 2 files", "lost: it is too short", "llama.cpp fake 7",
                           "f32 keys and values. Peer", "both with f16 keys", "Windows of 64"})
    CHECK(text.find(part) != std::string::npos);
}

}  // namespace leasehold
