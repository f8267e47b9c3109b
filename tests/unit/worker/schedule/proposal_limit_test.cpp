#include "worker/schedule/rows/proposal_limit.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

constexpr Duration kStep{1'000'000};

/// Steps whose time is kStep, and `row` more for each proposal.
struct Machine {
  explicit Machine(Duration of_row, std::uint32_t rows = 1) : row(of_row), decode(rows) {}

  std::uint32_t step(std::uint32_t wanted, bool shared = false) {
    const std::uint32_t proposed = limit.rows(decode, shared, wanted);
    limit.note(kStep + proposed * row, {.decode = decode, .proposed = proposed});
    return proposed;
  }
  void learn(bool shared = false) {
    for (int i = 0; i < 400; ++i) (void)step(8, shared);
  }
  /// Of 8 proposals that are right with the chance `rate`, or a little more.
  std::uint32_t worth(double rate) const {
    Acceptance acceptance;
    while (acceptance.rate() < rate) acceptance.note(1, false);
    return limit.worth(acceptance, decode, 8);
  }

  Duration row;
  std::uint32_t decode;
  ProposalLimit limit;
};

}  // namespace

TEST_CASE("proposal limit: without times all proposals get rows") {
  const ProposalLimit limit;
  CHECK(limit.rows(3, true, 9) == 9);
  CHECK(limit.worth({}, 3, 9) == 9);
}

TEST_CASE("proposal limit: a step without proposals is measured before one with some") {
  Machine machine(kStep / 10);
  machine.limit.note(kStep, {.decode = 2});
  CHECK(machine.step(8) == 0);  // no step of one row was measured
  CHECK(machine.step(8) == 4);  // few, until their time is known
  CHECK(machine.step(8) == 8);
  int without = 0;
  for (int i = 0; i < 650; ++i) without += machine.step(8) == 0 ? 1 : 0;
  CHECK(without == 10);
}

TEST_CASE("proposal limit: a proposal gets a row when its chance is above its cost") {
  Machine cheap(kStep / 100);
  cheap.learn();
  CHECK(cheap.worth(0.9) == 8);
  CHECK(cheap.worth(0.3) >= 2);
  Machine dear(kStep / 2);
  dear.learn();
  CHECK(dear.worth(0.95) >= 4);
  CHECK(dear.worth(0.75) == 1);
  CHECK(dear.worth(0.5) == 0);
  Machine useless(kStep);
  useless.learn();
  CHECK(useless.worth(0.99) == 0);
}

TEST_CASE("proposal limit: rows that a wrong proposal repeats are part of its cost") {
  Machine machine(kStep / 4);
  machine.learn();
  const auto worth = [&](double rate, bool repeats) {
    Acceptance acceptance;
    while (acceptance.rate() < rate) acceptance.note(1, false);
    return machine.limit.worth(acceptance, machine.decode, 8, repeats);
  };
  CHECK(worth(0.99, true) == 8);
  CHECK(worth(0.8, true) < worth(0.8, false));
  CHECK(worth(0.38, false) == 1);
  CHECK(worth(0.38, true) == 0);
}

TEST_CASE("proposal limit: the more sequences decode, the more a row costs") {
  Machine machine(kStep / 10, 8);  // a row takes 0.8 of what a token takes
  machine.learn();
  CHECK(machine.worth(0.9) == 0);
}

TEST_CASE("proposal limit: beside other tenants a step is hardly longer") {
  Machine machine(kStep / 10, 4);
  machine.learn(/*shared=*/true);
  CHECK(machine.limit.rows(4, true, 8) == 0);
  Machine cheap(kStep / 100, 4);
  cheap.learn(/*shared=*/true);
  CHECK(cheap.limit.rows(4, true, 8) >= 2);
  CHECK(cheap.limit.rows(4, true, 8) <= 3);
}

TEST_CASE("proposal limit: slow steps do not end proposals for ever") {
  Machine machine(kStep / 50);
  machine.learn();
  REQUIRE(machine.worth(0.9) > 0);
  int slow = 0;
  for (; machine.worth(0.9) > 0 && slow < 100; ++slow)
    machine.limit.note(1000 * kStep, {.decode = 1, .proposed = 1});
  CHECK(slow > 1);  // one alone is a stall
  CHECK(slow < 100);
  int steps = 0;
  for (; machine.worth(0.9) == 0 && steps < 10'000; ++steps)
    machine.limit.note(kStep, {.decode = 1});
  CHECK(steps > 0);
  CHECK(steps < 2'000);
}

TEST_CASE("proposal limit: each number of decoding sequences is measured again") {
  ProposalLimit limit;
  limit.note(kStep, {.decode = 2});
  int without = 0;
  for (int i = 0; i < 650; ++i) {
    limit.note(kStep, {.decode = 1});
    const std::uint32_t proposed = limit.rows(2, false, 8);
    without += proposed == 0 ? 1 : 0;
    limit.note(kStep + proposed * (kStep / 10), {.decode = 2, .proposed = proposed});
  }
  CHECK(without == 10);
}

TEST_CASE("proposal limit: a stall in the first step with proposals does not end them") {
  Machine machine(kStep / 50);
  machine.limit.note(kStep, {.decode = 1});
  machine.limit.note(1000 * kStep, {.decode = 1, .proposed = 1});
  CHECK(machine.worth(0.9) > 0);
  CHECK(machine.worth(0.2) == 0);  // it counts, within a bound
}

TEST_CASE("proposal limit: acceptance follows what was drawn") {
  Acceptance acceptance;
  for (int i = 0; i < 10; ++i) acceptance.note(3, false);
  CHECK(acceptance.rate() > 0.95);
  for (int i = 0; i < 30; ++i) acceptance.note(0, true);
  CHECK(acceptance.rate() < 0.05);
}
