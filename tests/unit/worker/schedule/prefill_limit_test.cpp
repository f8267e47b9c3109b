#include "worker/schedule/rows/prefill_limit.hpp"

#include <catch2/catch.hpp>

#include "worker/schedule/scheduler_types.hpp"

namespace leasehold {
namespace {

using std::chrono::microseconds;

constexpr std::uint32_t kBudget = 256;

/// Steps of eight streams that take 10 ms, and 0.1 ms for each prompt row.
Duration step_time(std::uint32_t prefill) {
  return microseconds(10'000 + 100 * prefill);
}

PrefillLimit measured() {
  PrefillLimit limit;
  limit.note(step_time(0), {.decode = 8});
  limit.note(step_time(32), {.decode = 8, .prefill = 32});
  return limit;
}

}  // namespace

TEST_CASE("prefill limit: a step without decode rows, or with unknown durations, is full") {
  CHECK(PrefillLimit().rows(8, kBudget) == kBudget);
  CHECK(measured().rows(0, kBudget) == kBudget);
}

TEST_CASE("prefill limit: prompts alone get the work of a step that a newcomer can wait for") {
  PrefillLimit limit;
  const auto run = [&](microseconds of_a_row) {
    const std::uint32_t rows = limit.rows(0, kBudget);
    limit.note(of_a_row * rows, {.prefill = rows});
    return rows;
  };
  for (int i = 0; i < 60; ++i) run(microseconds(4'000));
  CHECK(run(microseconds(4'000)) == 50);  // 200 ms
  for (int i = 0; i < 60; ++i) run(microseconds(100'000));
  CHECK(run(microseconds(100'000)) == 16);  // never less than the first rows
  for (int i = 0; i < 200; ++i) run(microseconds(10));
  CHECK(run(microseconds(10)) == kBudget);
}

TEST_CASE("prefill limit: a clock that does not run measures nothing") {
  PrefillLimit limit;
  limit.note(Duration::zero(), {.decode = 8});
  CHECK(limit.rows(8, kBudget) == kBudget);
}

TEST_CASE("prefill limit: the rows of a prompt take at most the share of a decode step") {
  CHECK(measured().rows(8, kBudget) == 40);
}

TEST_CASE("prefill limit: short prompts of the streams' own tenants take longer steps") {
  PrefillLimit limit = measured();
  const ShortPrompts one{.per_stream = 0.125, .work = 1'000};
  CHECK(limit.rows(8, kBudget, one) == 64);  // twice the rows that measured the cost
  limit.note(step_time(64), {.decode = 8, .prefill = 64});
  CHECK(limit.rows(8, kBudget, one) == Approx(100).margin(1));  // 10 ms
  CHECK(limit.rows(8, kBudget, {.per_stream = 0.03125, .work = 1'000}) == 40);
  CHECK(limit.rows(8, kBudget, {.per_stream = 1, .work = 50}) == 50);
  CHECK(limit.rows(8, kBudget, {.per_stream = 1, .work = 20}) == 40);
}

TEST_CASE("prefill limit: a step with short prompts is as long as one of prompts alone at most") {
  PrefillLimit limit;
  limit.note(microseconds(20'000), {.decode = 1});
  limit.note(microseconds(20'000 + 16 * 6'000), {.decode = 1, .prefill = 16});
  CHECK(limit.rows(1, kBudget, {.per_stream = 7, .work = 400}) == 30);  // 200 ms
}

TEST_CASE("short prompts: a tenant with streams and no prompt shortens the steps of all") {
  const TenantAccount ann, bob, dan;
  ShortPromptCount count;
  CHECK(count.result().per_stream == 0);
  count.add_prompt(ann, 30);
  count.add_prompt(ann, 40);
  count.add_prompt(dan, 50);
  CHECK(count.result().per_stream == 0);  // no stream waits
  count.add_stream(ann);
  CHECK(count.result().per_stream == 2);
  CHECK(count.result().work == 120);
  count.add_stream(bob);
  CHECK(count.result().per_stream == 0);
}

TEST_CASE("prefill limit: on a machine with cheap rows the budget is the limit") {
  PrefillLimit limit;
  limit.note(microseconds(10'000), {.decode = 8});
  limit.note(microseconds(10'128), {.decode = 8, .prefill = 128});
  CHECK(limit.rows(8, kBudget) == kBudget);
}

TEST_CASE("prefill limit: short prompts that seem to cost nothing do not fill the budget") {
  PrefillLimit limit;
  limit.note(microseconds(12'000), {.decode = 8});  // the machine stalled for 2 ms
  for (int i = 0; i < 50; ++i) limit.note(step_time(4), {.decode = 8, .prefill = 4});
  CHECK(limit.rows(8, kBudget) == 16);
  limit.note(step_time(16), {.decode = 8, .prefill = 16});
  CHECK(limit.rows(8, kBudget) <= 32);
}

TEST_CASE("prefill limit: a row's cost is measured by long prompts more than by short ones") {
  PrefillLimit limit;
  limit.note(step_time(0), {.decode = 8});
  for (int i = 0; i < 50; ++i) limit.note(microseconds(10'004), {.decode = 8, .prefill = 4});
  std::uint32_t rows = 0;
  for (int i = 0; i < 10; ++i) {
    rows = limit.rows(8, kBudget);
    limit.note(step_time(rows), {.decode = 8, .prefill = rows});
  }
  CHECK(rows < 72);
}

TEST_CASE("prefill limit: a prompt gets a row even where one costs more than the share") {
  PrefillLimit limit;
  limit.note(microseconds(10'000), {.decode = 8});
  limit.note(microseconds(1'000'000), {.decode = 8, .prefill = 2});
  CHECK(limit.rows(8, kBudget) == 1);
}

TEST_CASE("prefill limit: decode rows are measured alone first, and again after an interval") {
  PrefillLimit limit;
  limit.note(step_time(256), {.prefill = 256});
  CHECK(limit.rows(8, kBudget) == 0);
  limit.note(step_time(0), {.decode = 8});
  std::uint32_t steps = 0;
  for (; limit.rows(8, kBudget) > 0; ++steps) {
    const std::uint32_t rows = limit.rows(8, kBudget);
    limit.note(step_time(rows), {.decode = 8, .prefill = rows});
  }
  CHECK(steps == PrefillLimit::kMeasureInterval);
  limit.note(step_time(0), {.decode = 8});
  CHECK(limit.rows(8, kBudget) > 0);
}

TEST_CASE("prefill limit: what rounding leaves of a row is added to later limits") {
  PrefillLimit limit;
  const auto time_of = [](std::uint32_t rows) { return microseconds(10'000 + 1'600 * rows); };
  limit.note(time_of(0), {.decode = 8});
  limit.note(time_of(16), {.decode = 8, .prefill = 16});
  std::uint32_t sum = 0;
  for (int i = 0; i < 40; ++i) {
    const std::uint32_t rows = limit.rows(8, kBudget);
    CHECK((rows == 2 || rows == 3));
    limit.note(time_of(rows), {.decode = 8, .prefill = rows});
    sum += rows;
  }
  CHECK(sum >= 99);  // of 2.5 rows in each step
  CHECK(sum <= 101);
}

/// Steps of a machine that becomes as fast as step_time after it was three times as slow.
TEST_CASE("prefill limit: a faster machine is measured at once, not after an interval") {
  PrefillLimit limit;
  const auto run = [&](int times) {
    const std::uint32_t rows = limit.rows(8, kBudget);
    limit.note(times * step_time(rows), {.decode = 8, .prefill = rows});
    return rows;
  };
  limit.note(3 * step_time(0), {.decode = 8});
  limit.note(3 * step_time(16), {.decode = 8, .prefill = 16});
  for (int i = 0; i < 20; ++i) run(3);
  CHECK(run(3) == 40);
  std::uint32_t steps = 0;
  while (run(1) != 0) REQUIRE(++steps <= PrefillLimit::kLeastInterval);
  CHECK(run(1) == 0);  // once more: the median of three has two times of the faster machine
  for (int i = 0; i < 40; ++i) CHECK(run(1) <= 40);
}

TEST_CASE("prefill limit: a measurement in which the machine stalls does not count") {
  PrefillLimit limit;
  for (int i = 0; i < 3; ++i) limit.note(step_time(0), {.decode = 8});
  limit.note(step_time(32), {.decode = 8, .prefill = 32});
  limit.note(10 * step_time(0), {.decode = 8});
  limit.note(step_time(0), {.decode = 8});
  CHECK(limit.rows(8, kBudget) == 40);
}

TEST_CASE(
    "prefill limit: where the machine's speed always changes, prompts wait three steps at most") {
  PrefillLimit limit = measured();
  std::uint32_t without_prompt = 0;
  std::uint32_t rows_of_all = 0;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t rows = limit.rows(8, kBudget);
    limit.note((i % 2 == 0 ? 1 : 3) * step_time(rows), {.decode = 8, .prefill = rows});
    without_prompt = rows == 0 ? without_prompt + 1 : 0;
    CHECK(without_prompt <= 3);
    rows_of_all += rows;
  }
  CHECK(rows_of_all > 400);
}

TEST_CASE("prefill limit: one step in which the machine stalls costs little") {
  PrefillLimit limit = measured();
  limit.note(std::chrono::seconds(5), {.decode = 8, .prefill = 40});
  CHECK(limit.rows(8, kBudget) >= 24);
}

}  // namespace leasehold
