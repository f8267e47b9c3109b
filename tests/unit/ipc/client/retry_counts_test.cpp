#include "ipc/client/retry_counts.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::client;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart{1'000'000'000};

/// After three failures, the worker has accepted the request.
RetryCounts after_three_failures() {
  RetryCounts counts{RetryPolicy{}};
  for (int i = 0; i < 3; ++i) counts.note_failure({});
  counts.note_accepted(kStart);
  return counts;
}

}  // namespace

TEST_CASE("retry counts: a token ends the row of failures and not that of setbacks") {
  RetryCounts counts = after_three_failures();
  CHECK(counts.failures() == 3);
  counts.note_token(kStart);
  CHECK(counts.failures() == 0);
  CHECK(counts.setbacks() == 3);
}

TEST_CASE("retry counts: a refusal that says when to retry is a setback and no failure") {
  RetryCounts counts = after_three_failures();
  counts.note_failure({.code = Errc::RebindRateLimited, .retry_after_ms = 500});
  CHECK(counts.failures() == 3);
  CHECK(counts.setbacks() == 4);
}

TEST_CASE("retry counts: enough tokens of one stream are progress") {
  RetryCounts counts = after_three_failures();
  for (int i = 0; i < 15; ++i) counts.note_token(kStart);
  CHECK(counts.setbacks() == 3);
  counts.note_token(kStart);
  CHECK(counts.setbacks() == 0);
}

TEST_CASE("retry counts: tokens of several streams do not add up to progress") {
  RetryCounts counts = after_three_failures();
  for (int stream = 0; stream < 10; ++stream) {
    for (int i = 0; i < 15; ++i) counts.note_token(kStart);
    counts.note_failure({});
    counts.note_accepted(kStart);
  }
  CHECK(counts.setbacks() == 13);
}

TEST_CASE("retry counts: a token that follows after a long time is progress") {
  RetryCounts counts = after_three_failures();
  counts.note_token(kStart + 4999ms);
  CHECK(counts.setbacks() == 3);
  counts.note_token(kStart + 5s);
  CHECK(counts.setbacks() == 0);
}
