/// A dense layer of int8: launches that a backend fuses have the bits of one launch each, and every
/// unit of them obeys the gate.
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <set>

#include "kernels/cpu/cpu_backend.hpp"
#include "tests/contract/backend/dense_layer.hpp"
#include "tests/support/child_process.hpp"

namespace leasehold::testing {
namespace {

const std::vector<std::uint32_t> kLengths{280, 300, 33};

/// Everything that a layer writes.
struct LayerResult {
  std::vector<float> x;
  std::vector<std::vector<std::byte>> kv;
  bool operator==(const LayerResult&) const = default;
};

LayerResult result_of(const DenseLayer& layer) {
  LayerResult result{layer.x, {}};
  for (std::uint32_t s = 0; s < kLengths.size(); ++s) result.kv.push_back(layer.kv.bytes_of(s));
  return result;
}

LayerResult run_layer(Rig& rig, DenseLayer& layer) {
  const auto gates = rig.table.step(3);
  REQUIRE(layer.run(*rig.backend, *gates) == gates->all());
  return result_of(layer);
}

/// The sites of the units of each thread, in order.
class SiteWatch final : public GateProbe {
 public:
  void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t, SequenceMask) override {
    const std::scoped_lock lock(mutex_);
    sites_[thread].push_back(site);
  }
  std::map<std::uint32_t, std::vector<LaunchSite>> sites() const {
    const std::scoped_lock lock(mutex_);
    return sites_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::vector<LaunchSite>> sites_;
};

/// Revokes the engine's lease in unit `unit` and counts what each thread begins after that.
class RevokeAtUnit final : public GateProbe {
 public:
  explicit RevokeAtUnit(int unit) : unit_(unit) {}
  void unit_polled(std::uint32_t thread, LaunchSite, std::uint16_t, SequenceMask) override {
    const std::scoped_lock lock(mutex_);
    if (has_revoked_) most_after_ = std::max(most_after_, ++after_[thread]);
    if (polled_++ != unit_) return;
    table->revoke(FakeTable::kEngineSlot);
    has_revoked_ = true;
  }
  bool has_revoked() const { return has_revoked_; }
  int most_after() const { return most_after_; }

  FakeTable* table = nullptr;

 private:
  std::mutex mutex_;
  int unit_;
  int polled_ = 0;
  bool has_revoked_ = false;
  std::map<std::uint32_t, int> after_;
  int most_after_ = 0;
};

}  // namespace

TEST_CASE("layer: every backend gives the reference's bits, for few rows and for many") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const TensorType type = GENERATE(TensorType::Q8_0, TensorType::Q4_K, TensorType::Q5_1);
  const std::vector<std::uint32_t> counts =
      GENERATE(std::vector<std::uint32_t>{1, 1, 1}, std::vector<std::uint32_t>{1, 6, 1},
               std::vector<std::uint32_t>{20, 9, 17});
  const bool has_head_norms = GENERATE(false, true);
  if (threads == kCuda && counts[0] > 1) return;  // 46 emulated rows take seconds and add no kernel
  const RopeStyle style = has_head_norms ? RopeStyle::Interleaved : RopeStyle::Halves;
  CAPTURE(threads, name(type), counts[0], counts[1], has_head_norms, test_seed());
  const auto run = [&](std::uint32_t backend) {
    Rig rig(backend);
    DenseLayer layer(test_seed() + 2000, counts, kLengths, type);
    layer.has_head_norms = layer.has_wide_bias = has_head_norms;
    layer.style = style;
    return run_layer(rig, layer);
  };
  REQUIRE(run(threads) == run(0));
}

TEST_CASE("layer: a few rows take six launches on the CPU backend") {
  const std::uint32_t threads = GENERATE(1, 2);
  FakeTable table;
  BackendLimits limits = kLimits;
  limits.attention_scratch_bytes = 1 << 20;  // attention of all rows fits one wave
  const auto backend = required(CpuBackend::create(limits, table.gates(threads)));
  DenseLayer layer(test_seed() + 2100, {1, 1, 0}, kLengths);
  const auto gates = table.step(3);
  REQUIRE(layer.run(*backend, *gates) == gates->all());
  REQUIRE(backend->launches_run() == 6);
}

TEST_CASE("layer: each thread prepares its rows once per launch, in a unit before its tiles") {
  SiteWatch watch;
  Rig rig(3, &watch);
  DenseLayer layer(test_seed() + 2200, {1, 0, 0}, kLengths);
  constexpr int kLaunches = 20;
  for (int step = 0; step < kLaunches; ++step) {
    const auto gates = rig.table.step(3);
    REQUIRE(layer.project_normed(*rig.backend, *gates).live == gates->all());
  }
  std::ptrdiff_t prologues = 0;
  std::ptrdiff_t tiles = 0;
  for (const auto& [thread, sites] : watch.sites()) {
    CAPTURE(thread);
    REQUIRE(sites.front() == LaunchSite::AttentionNorm);
    for (std::size_t i = 1; i < sites.size(); ++i)
      if (sites[i] == LaunchSite::AttentionNorm) REQUIRE(sites[i - 1] != LaunchSite::AttentionNorm);
    const auto own = std::ranges::count(sites, LaunchSite::AttentionNorm);
    REQUIRE(own <= kLaunches);
    prologues += own;
    tiles += std::ranges::count(sites, LaunchSite::QueryProjection);
  }
  REQUIRE(tiles > prologues);  // so no tile has one of its own
}

TEST_CASE("layer: the CPU backend refuses a product over the rows that a late thread reads") {
  const ChildExit end = run_in_child([] {
    Rig rig(1);
    SeededRandom random(test_seed() + 2700);
    const GroupedMatrix square(random, TensorType::Q8_0, 64, 64);
    std::vector<float> x = random_floats(random, square.rows.n_in);
    run_step(rig, plain_rows(1), [&](Backend& backend, const LaunchContext& context) {
      return backend.matmul(
          context,
          {.site = LaunchSite::FfnUp, .weight = square.view(), .x = x.data(), .out = x.data()});
    });
    return 0;
  });
  REQUIRE(end.killed_by == SIGABRT);
}

TEST_CASE("layer: no unit multiplies both gate and up where their rows are wide") {
  constexpr std::uint32_t kRows = 16;
  constexpr std::uint32_t kGroups = 4;
  constexpr std::uint32_t kOut = 32;
  const std::uint32_t n_in = kLimits.max_width;
  SiteWatch watch;
  Rig rig(kForcedSimd + static_cast<std::uint32_t>(SimdPath::Scalar), &watch);
  SeededRandom random(test_seed() + 2600);
  const GroupedMatrix gate(random, TensorType::Q8_0, kGroups * kGroupRows, n_in);
  const GroupedMatrix up(random, TensorType::Q8_0, kGroups * kGroupRows, n_in);
  const GroupedMatrix down(random, TensorType::Q8_0, kOut, kGroups * kGroupRows);
  LeasedMemory gain(n_in * sizeof(float));
  gain.fill<float>(random_floats(random, n_in));
  const std::vector<float> x = random_floats(random, std::size_t{kRows} * n_in);
  std::vector<float> normed(x.size());
  std::vector<float> wide_gate(std::size_t{kRows} * gate.rows.n_out);
  std::vector<float> wide_up(wide_gate.size());
  std::vector<float> out(std::size_t{kRows} * kOut);
  const RmsNormArgs norm{.site = LaunchSite::FfnNorm,
                         .x = x.data(),
                         .weight = gain.at().as<const float>(),
                         .out = normed.data(),
                         .width = n_in,
                         .epsilon = 1e-5F};
  const FeedForwardArgs args{.norm = &norm,
                             .gate = {.site = LaunchSite::FfnGate,
                                      .weight = gate.view(),
                                      .x = normed.data(),
                                      .out = wide_gate.data()},
                             .up = {.site = LaunchSite::FfnUp,
                                    .weight = up.view(),
                                    .x = normed.data(),
                                    .out = wide_up.data()},
                             .down = {.site = LaunchSite::FfnDown,
                                      .weight = down.view(),
                                      .x = wide_gate.data(),
                                      .out = out.data()}};
  run_step(rig, plain_rows(kRows), [&](Backend& backend, const LaunchContext& context) {
    return backend.feed_forward(context, args);
  });
  std::ptrdiff_t units = 0;
  for (const auto& [thread, sites] : watch.sites())
    units += std::ranges::count(sites, LaunchSite::FfnGate);
  REQUIRE(units == 2 * kGroups * (kRows / 4));  // the smallest tiles: a group, four rows
}

TEST_CASE("layer: once the engine's lease is revoked each thread begins at most one unit") {
  const std::uint32_t threads = GENERATE(1, 2, 3);
  const int unit = GENERATE(0, 1, 2, 4, 6, 8);
  const std::uint32_t n_rows = GENERATE(1, 12);
  RevokeAtUnit probe(unit);
  Rig rig(threads, &probe);
  probe.table = &rig.table;
  DenseLayer layer(test_seed() + 2300, {n_rows, 0, 0}, kLengths);
  const auto gates = rig.table.step(3);
  CAPTURE(threads, unit, n_rows);
  REQUIRE(layer.run(*rig.backend, *gates) == 0);
  REQUIRE(probe.has_revoked());
  REQUIRE(probe.most_after() <= (threads == 1 ? 0 : 1));
}

TEST_CASE("layer: a dead sequence's memory is not touched and the others keep their bits") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const std::vector<std::uint32_t> counts =
      GENERATE(std::vector<std::uint32_t>{1, 1, 1}, std::vector<std::uint32_t>{4, 6, 2});
  constexpr std::uint32_t kDead = 1;
  CAPTURE(threads, counts[0]);
  Rig rig(threads);
  DenseLayer undisturbed(test_seed() + 2400, counts, kLengths);
  const LayerResult expected = run_layer(rig, undisturbed);

  DenseLayer layer(test_seed() + 2400, counts, kLengths);
  const auto gates = rig.table.step(3);
  rig.table.revoke(FakeTable::slot_of(kDead));
  layer.kv.forbid(kDead);
  REQUIRE(layer.run(*rig.backend, *gates) == 0b101);
  REQUIRE(layer.kv.bytes_of(0) == expected.kv[0]);
  REQUIRE(layer.kv.bytes_of(2) == expected.kv[2]);
  for (std::size_t r = 0; r < layer.rows.size(); ++r) {
    if (layer.rows[r].sequence == kDead) continue;
    const auto begin = static_cast<std::ptrdiff_t>(r * DenseLayer::kWidth);
    REQUIRE(std::equal(layer.x.begin() + begin, layer.x.begin() + begin + DenseLayer::kWidth,
                       expected.x.begin() + begin));
  }
}

}  // namespace leasehold::testing
