/// The products of adapters: the written order on every path, only for rows that have an adapter
/// and whose sequence is live.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "tests/contract/backend/rig.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {
namespace {

constexpr int kLowRankShapes = 12;
constexpr std::uint32_t kRanks[] = {1, 3, 8, 16, 64};
constexpr std::uint32_t kMaxRank = 64;
constexpr TensorType kMatrixTypes[] = {TensorType::F16, TensorType::BF16, TensorType::F32};

/// The matrices of an adapter, one pair per slot.
struct Adapter {
  std::vector<Matrix> a;
  std::vector<Matrix> b;
  std::vector<LowRankMatrix> slots;

  void add(SeededRandom& random, std::uint32_t n_in, std::uint32_t n_out) {
    const std::uint32_t rank = kRanks[random.below(std::size(kRanks))];
    const TensorType type = kMatrixTypes[random.below(std::size(kMatrixTypes))];
    a.emplace_back(random, type, rank, n_in);
    b.emplace_back(random, type, rank, n_out);
    slots.push_back({.type = type,
                     .rank = random.below(5) == 0 ? 0 : rank,
                     .scale = random_floats(random, 1, 2.0F)[0],
                     .a = a.back().memory.at(),
                     .b = b.back().memory.at()});
  }
  /// Gives every slot a rank.
  void fill_slots() {
    for (std::size_t p = 0; p < slots.size(); ++p) slots[p].rank = a[p].n_out;
  }
  void forbid_access() {
    for (Matrix& matrix : a) matrix.memory.forbid_access();
    for (Matrix& matrix : b) matrix.memory.forbid_access();
  }
};

/// Sequences 0 and 3 share an adapter, 2 has its own, 1 and 4 have none.
struct LowRankCase {
  static constexpr std::uint32_t kOwn = 2;
  static constexpr SequenceMask kOthers = 0b11011;

  LowRankCase(SeededRandom& random, std::vector<std::uint32_t> counts)
      : rows(rows_of(counts, {300, 40, 64, 80, 9})),
        n_in(static_cast<std::uint32_t>(1 + random.below(random.below(4) == 0 ? 2600 : 200))),
        x(random_floats(random, rows.size() * n_in)) {
    const std::size_t n_products = 1 + random.below(LowRankArgs::kMaxProducts);
    for (std::size_t p = 0; p < n_products; ++p) {
      n_out.push_back(static_cast<std::uint32_t>(1 + random.below(700)));
      before.push_back(random_floats(random, rows.size() * n_out.back()));
      shared.add(random, n_in, n_out.back());
      own.add(random, n_in, n_out.back());
    }
    adapters = {shared.slots.data(), nullptr, own.slots.data(), shared.slots.data(), nullptr};
  }

  using Outputs = std::vector<std::vector<float>>;

  LaunchStatus run(Backend& backend, const GateSet& gates, Outputs& out) {
    std::vector<LowRankProduct> products;
    for (std::uint32_t p = 0; p < n_out.size(); ++p)
      products.push_back({LaunchSite::QueryProjection, p, out[p].data(), n_out[p]});
    return backend.low_rank({.gates = &gates, .rows = rows, .layer = 1}, {.adapters = adapters,
                                                                          .x = x.data(),
                                                                          .n_in = n_in,
                                                                          .products = products,
                                                                          .max_rank = kMaxRank,
                                                                          .h = h.data()});
  }
  Outputs on(Rig& rig) {
    Outputs out = before;
    const auto gates = rig.table.step(5);
    REQUIRE(run(*rig.backend, *gates, out).live == gates->all());
    return out;
  }
  const Adapter* adapter_of(std::uint32_t sequence) const {
    if (sequence == kOwn) return &own;
    return sequence == 0 || sequence == 3 ? &shared : nullptr;
  }

  std::vector<RowRef> rows;
  std::uint32_t n_in;
  std::vector<float> x;
  std::vector<std::uint32_t> n_out;
  Outputs before;
  Adapter shared;
  Adapter own;
  std::vector<const LowRankMatrix*> adapters;
  std::vector<float> h = std::vector<float>(rows.size() * LowRankArgs::kMaxProducts * kMaxRank);
};

void require_equal(const LowRankCase::Outputs& out, const LowRankCase::Outputs& expected) {
  for (std::size_t p = 0; p < expected.size(); ++p)
    REQUIRE(first_difference(out[p], expected[p]) == -1);
}

/// The rows of some sequences.
std::vector<float> rows_among(const LowRankCase& c, const LowRankCase::Outputs& out,
                              SequenceMask sequences) {
  std::vector<float> some;
  for (std::size_t p = 0; p < out.size(); ++p)
    for (std::size_t r = 0; r < c.rows.size(); ++r)
      if ((sequences >> c.rows[r].sequence & 1) != 0)
        some.insert(some.end(), out[p].begin() + static_cast<std::ptrdiff_t>(r * c.n_out[p]),
                    out[p].begin() + static_cast<std::ptrdiff_t>((r + 1) * c.n_out[p]));
  return some;
}

std::vector<std::uint32_t> random_counts(SeededRandom& random) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t s = 0; s < 5; ++s)
    counts.push_back(static_cast<std::uint32_t>(random.below(random.below(3) == 0 ? 30 : 3)));
  while (counts[0] + counts[1] + counts[2] + counts[3] + counts[4] > kLimits.max_rows)
    for (std::uint32_t& count : counts) count /= 2;
  return counts;
}

}  // namespace

TEST_CASE("low rank: every backend gives the reference's bits, with shared and own adapters") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 3800);
  Rig rig(threads);
  Rig reference(0);
  for (int shape = 0; shape < kLowRankShapes; ++shape) {
    LowRankCase c(random, random_counts(random));
    CAPTURE(threads, test_seed(), shape, c.n_in, c.n_out, c.rows.size());
    require_equal(c.on(rig), c.on(reference));
  }
}

TEST_CASE("low rank: rows get the product of their sequence's matrices, others keep their bits") {
  SeededRandom random(test_seed() + 3801);
  Rig rig(0);
  LowRankCase c(random, {3, 2, 2, 1, 2});
  const LowRankCase::Outputs out = c.on(rig);
  for (std::size_t p = 0; p < out.size(); ++p)
    for (std::size_t at = 0; at < out[p].size(); ++at) {
      const std::size_t r = at / c.n_out[p];
      const auto o = static_cast<std::uint32_t>(at % c.n_out[p]);
      const Adapter* adapter = c.adapter_of(c.rows[r].sequence);
      double expected = c.before[p][at];
      double magnitude = std::abs(expected);
      const std::uint32_t rank = adapter != nullptr ? adapter->slots[p].rank : 0;
      for (std::uint32_t k = 0; k < rank; ++k) {
        double h = 0;
        double of_h = 0;
        for (std::uint32_t i = 0; i < c.n_in; ++i) {
          h += adapter->a[p].at(k, i) * double{c.x[r * c.n_in + i]};
          of_h += std::abs(adapter->a[p].at(k, i) * double{c.x[r * c.n_in + i]});
        }
        const double factor = adapter->slots[p].scale * adapter->b[p].at(k, o);
        expected += factor * h;
        magnitude += std::abs(factor) * of_h;
      }
      CAPTURE(p, r, o, rank);
      if (rank == 0) REQUIRE(out[p][at] == c.before[p][at]);
      REQUIRE(std::abs(out[p][at] - expected) <= magnitude * (c.n_in / 32.0 + rank + 8) * 0x1p-24);
    }
}

TEST_CASE("low rank: a row's bits depend neither on other rows nor on who shares its adapter") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 3802);
  Rig rig(threads);
  LowRankCase c(random, {3, 1, 4, 9, 1});
  const LowRankCase::Outputs together = c.on(rig);
  const std::vector<LowRankMatrix> copy = c.shared.slots;
  c.adapters[3] = copy.data();
  require_equal(c.on(rig), together);
  c.adapters = {nullptr, nullptr, nullptr, copy.data(), nullptr};
  REQUIRE(rows_among(c, c.on(rig), 0b01000) == rows_among(c, together, 0b01000));
}

TEST_CASE("low rank: a revoked adapter is not read, and the other rows keep their bits") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  SeededRandom random(test_seed() + 3803);
  Rig rig(threads);
  LowRankCase c(random, {3, 1, 5, 2, 1});
  c.own.fill_slots();
  c.shared.fill_slots();
  const LowRankCase::Outputs calm = c.on(rig);
  const auto gates = rig.table.step(5);
  rig.table.revoke(FakeTable::slot_of(LowRankCase::kOwn));
  c.own.forbid_access();
  LowRankCase::Outputs out = c.before;
  REQUIRE(c.run(*rig.backend, *gates, out).live == LowRankCase::kOthers);
  CAPTURE(threads, test_seed());
  REQUIRE(rows_among(c, out, LowRankCase::kOthers) == rows_among(c, calm, LowRankCase::kOthers));
  REQUIRE(rows_among(c, out, ~LowRankCase::kOthers) ==
          rows_among(c, c.before, ~LowRankCase::kOthers));
}

TEST_CASE("low rank: an adapter revoked between two units of a launch is not read by the second") {
  const std::uint32_t threads = GENERATE(0, 1);  // one thread, so "between" is well defined
  const int unit = GENERATE(0, 1, 2);
  SeededRandom random(test_seed() + 3804);
  LowRankCase c(random, {3, 1, 5, 2, 1});
  c.own.fill_slots();
  c.shared.fill_slots();
  FakeTable* table = nullptr;
  AtUnits probe;
  probe.start([&](int at) {
    if (at == unit) table->revoke(FakeTable::slot_of(LowRankCase::kOwn));
    if (at == unit + 1) c.own.forbid_access();
  });
  Rig rig(threads, &probe);
  table = &rig.table;
  const auto gates = rig.table.step(5);
  LowRankCase::Outputs out = c.before;
  REQUIRE(c.run(*rig.backend, *gates, out).live == LowRankCase::kOthers);
}

TEST_CASE("low rank: a launch without a row that has an adapter runs no unit on the CPU backend") {
  SeededRandom random(test_seed() + 3805);
  Rig rig(2);
  LowRankCase c(random, {0, 3, 0, 0, 2});
  require_equal(c.on(rig), c.before);
  REQUIRE(rig.units() == 0);
}

}  // namespace leasehold::testing
