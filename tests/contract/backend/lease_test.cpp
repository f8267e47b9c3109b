/// How a backend reacts to a revoked lease: before a launch, and during one.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "tests/contract/backend/rig.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {
namespace {

/// A small step with a launch of each kind.
class SmallStep {
 public:
  static constexpr std::uint32_t kWidth = 64;
  static constexpr std::uint32_t kHeads = 4;
  static constexpr std::uint32_t kHeadDim = 16;

  explicit SmallStep(std::uint64_t seed)
      : random_(seed),
        kv(random_, KvLayout(2, {.n_kv_heads = 2, .head_dim = kHeadDim, .type = KvType::F16}),
           lengths_),
        weight(random_, TensorType::Q4_0, kWidth, kWidth),
        norm_(kWidth * sizeof(float)),
        x_(random_floats(random_, rows.size() * kWidth)),
        q_(x_),
        k_(random_floats(random_, rows.size() * kWidth)) {
    norm_.fill<float>(random_floats(random_, kWidth));
  }

  LaunchContext context(const GateSet& gates) const {
    return {.gates = &gates, .rows = rows, .layer = 1};
  }
  LaunchStatus attention(Backend& backend, const GateSet& gates) {
    return backend.attention(context(gates), {.layout = kv.layout.layer(1),
                                              .q = q_.data(),
                                              .out = out.data(),
                                              .n_heads = kHeads,
                                              .scale = 0.25F,
                                              .block_tables = kv.block_tables()});
  }
  LaunchStatus append(Backend& backend, const GateSet& gates) {
    return testing::append(backend, context(gates), kv.layout.layer(1), k_, k_, kv.block_tables());
  }
  LaunchStatus matmul(Backend& backend, const GateSet& gates) {
    return backend.matmul(
        context(gates),
        {.site = LaunchSite::FfnUp, .weight = weight.view(), .x = x_.data(), .out = out.data()});
  }
  /// Every sequence has the same adapter, of rank 1.
  LaunchStatus low_rank(Backend& backend, const GateSet& gates) {
    const LowRankMatrix matrix{
        .type = TensorType::F32, .rank = 1, .scale = 1.0F, .a = norm_.at(), .b = norm_.at()};
    const std::vector<const LowRankMatrix*> adapters(gates.sequence_count(), &matrix);
    const LowRankProduct product{LaunchSite::QueryProjection, 0, out.data(), kWidth};
    std::vector<float> h(rows.size());
    return backend.low_rank(context(gates), {.adapters = adapters,
                                             .x = x_.data(),
                                             .n_in = kWidth,
                                             .products = {&product, 1},
                                             .max_rank = 1,
                                             .h = h.data()});
  }
  LaunchStatus copy(Backend& backend, const GateSet& gates, LaunchSite site) {
    return backend.copy_in(
        context(gates),
        {.site = site, .to = copied.at(), .from = bytes.data(), .size_bytes = bytes.size()});
  }

  using Launch = std::function<LaunchStatus(Backend&, const GateSet&)>;
  using Launches = std::map<LaunchSite, Launch>;
  Launches every_launch() {
    Launches all;
    add_memory_launches(all);
    add_layer_launches(all);
    add_expert_launches(all);
    return all;
  }

  std::vector<float> rows_out(std::uint32_t sequence) const {
    std::vector<float> mine;
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (rows[r].sequence == sequence)
        mine.insert(mine.end(), out.begin() + static_cast<std::ptrdiff_t>(r * kWidth),
                    out.begin() + static_cast<std::ptrdiff_t>((r + 1) * kWidth));
    return mine;
  }

 private:
  void add_memory_launches(Launches& all) {
    all[LaunchSite::AttentionScores] = [this](Backend& b, const GateSet& g) {
      return attention(b, g);
    };
    all[LaunchSite::KvAppend] = [this](Backend& b, const GateSet& g) { return append(b, g); };
    all[LaunchSite::WeightLoad] = [this](Backend& b, const GateSet& g) {
      return copy(b, g, LaunchSite::WeightLoad);
    };
    all[LaunchSite::Commit] = [this](Backend& b, const GateSet& g) {
      return copy(b, g, LaunchSite::Commit);
    };
  }
  void add_layer_launches(Launches& all) {
    all[LaunchSite::FfnUp] = [this](Backend& b, const GateSet& g) { return matmul(b, g); };
    all[LaunchSite::Embedding] = [this](Backend& b, const GateSet& g) {
      return b.embedding(context(g), {weight.view(), tokens_.data(), out.data()});
    };
    all[LaunchSite::FfnNorm] = [this](Backend& b, const GateSet& g) {
      return b.rms_norm(context(g), {.site = LaunchSite::FfnNorm,
                                     .x = x_.data(),
                                     .weight = norm_.at().as<const float>(),
                                     .out = out.data(),
                                     .width = kWidth,
                                     .epsilon = 1e-5F});
    };
    all[LaunchSite::QueryProjection] = [this](Backend& b, const GateSet& g) {
      return low_rank(b, g);
    };
    all[LaunchSite::SwiGlu] = [this](Backend& b, const GateSet& g) {
      return b.swiglu(context(g), {.gate = out.data(), .up = x_.data(), .width = kWidth});
    };
  }
  void add_expert_launches(Launches& all) {
    all[LaunchSite::ExpertRouting] = [this](Backend& b, const GateSet& g) {
      return b.expert_routing(context(g), {.scores = x_.data(),
                                           .n_experts = 4,
                                           .n_used = 1,
                                           .normalize_expert_weights = true,
                                           .chosen = chosen_.data(),
                                           .weights = expert_weights_.data()});
    };
    all[LaunchSite::ExpertUp] = [this](Backend& b, const GateSet& g) {
      return b.expert_matmul(context(g), {.site = LaunchSite::ExpertUp,
                                          .weight = weight.view(),
                                          .n_experts = 4,
                                          .chosen = chosen_.data(),
                                          .n_items = static_cast<std::uint32_t>(chosen_.size()),
                                          .x = x_.data(),
                                          .items_per_x = 1,
                                          .out = out.data()});
    };
    all[LaunchSite::ExpertSum] = [this](Backend& b, const GateSet& g) {
      return b.weighted_sum(context(g), {.x = x_.data(),
                                         .weights = expert_weights_.data(),
                                         .out = out.data(),
                                         .n_terms = 1,
                                         .width = kWidth});
    };
  }

  SeededRandom random_;
  std::vector<std::uint32_t> lengths_{280, 300, 33};

 public:
  std::vector<RowRef> rows = rows_of({4, 6, 2}, {280, 300, 33});
  KvFixture kv;
  Matrix weight;
  LeasedMemory copied{200'000};
  std::vector<std::byte> bytes = std::vector<std::byte>(200'000, std::byte{7});
  std::vector<float> out = std::vector<float>(rows.size() * kWidth);

 private:
  LeasedMemory norm_;
  std::vector<std::int32_t> tokens_ = std::vector<std::int32_t>(rows.size(), 3);
  std::vector<float> x_;
  std::vector<float> q_;
  std::vector<float> k_;
  std::vector<std::uint32_t> chosen_ = std::vector<std::uint32_t>(rows.size(), 2);
  std::vector<float> expert_weights_ = std::vector<float>(rows.size(), 1.0F);
};

/// Calls `act` at the n-th unit and counts the units that each thread begins after `act` returned.
class ActAtUnit final : public GateProbe {
 public:
  ActAtUnit(int unit, std::function<void()> act) : unit_(unit), act_(std::move(act)) {}

  void unit_polled(std::uint32_t thread, LaunchSite, std::uint16_t, SequenceMask) override {
    if (acted_.load()) after_[thread].fetch_add(1);
    if (polled_.fetch_add(1) != unit_) return;
    act_();
    acted_.store(true);
  }
  int most_after() const {
    int most = 0;
    for (const auto& count : after_) most = std::max(most, count.load());
    return most;
  }
  bool acted() const { return acted_; }

 private:
  int unit_;
  std::function<void()> act_;
  std::atomic<int> polled_{0};
  std::atomic<bool> acted_{false};
  std::array<std::atomic<int>, kMaxGateThreads> after_{};
};

constexpr std::uint32_t kDead = 1;
constexpr SequenceMask kSurvivors = 0b101;

}  // namespace

TEST_CASE("backend: a dead sequence's memory is not touched and the others keep their bits") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  CAPTURE(threads);
  Rig rig(threads);
  SmallStep undisturbed(test_seed());
  const auto calm = rig.table.step(3);
  undisturbed.append(*rig.backend, *calm);
  undisturbed.attention(*rig.backend, *calm);

  SmallStep step(test_seed());
  const auto gates = rig.table.step(3);
  rig.table.revoke(FakeTable::slot_of(kDead));
  step.kv.forbid(kDead);
  REQUIRE(step.append(*rig.backend, *gates).live == kSurvivors);
  REQUIRE(step.attention(*rig.backend, *gates).live == kSurvivors);

  REQUIRE(first_difference(step.rows_out(0), undisturbed.rows_out(0)) == -1);
  REQUIRE(first_difference(step.rows_out(2), undisturbed.rows_out(2)) == -1);
  REQUIRE(step.rows_out(kDead) == std::vector<float>(6 * SmallStep::kWidth));
  REQUIRE(step.kv.bytes_of(2) == undisturbed.kv.bytes_of(2));
  const auto refusals = rig.table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  REQUIRE(refusals[0].sequence == kDead);
  // A backend with a device polls when it uploads the step.
  REQUIRE(refusals[0].site == (threads == kCuda ? LaunchSite::Embedding : LaunchSite::KvAppend));
}

TEST_CASE("backend: a local stop masks a sequence as a revocation does") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  SmallStep step(test_seed());
  const auto gates = rig.table.step(3);
  rig.table.stops().stop(kDead, LocalStop::Cancelled);
  step.kv.forbid(kDead);
  REQUIRE(step.attention(*rig.backend, *gates).live == kSurvivors);
}

TEST_CASE("backend: a lease revoked between two units of a launch is not touched by the second") {
  const std::uint32_t threads = GENERATE(0, 1);  // one thread, so "between" is well defined
  SmallStep step(test_seed());
  FakeTable* table = nullptr;
  AtUnits probe;
  // Revokes the lease while unit 3 runs. After the next poll the memory may have another owner.
  probe.start([&](int unit) {
    if (unit == 3) table->revoke(FakeTable::slot_of(kDead));
    if (unit == 4) step.kv.forbid(kDead);
  });
  Rig rig(threads, &probe);
  table = &rig.table;
  const auto gates = rig.table.step(3);
  REQUIRE(step.attention(*rig.backend, *gates).live == kSurvivors);
}

TEST_CASE("backend: after the engine's lease is revoked no unit of any launch runs") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  SmallStep step(test_seed());
  const auto gates = rig.table.step(3);
  rig.table.revoke(FakeTable::kEngineSlot, RevokeReason::ModelUnloaded);
  for (const auto& [site, launch] : step.every_launch()) {
    CAPTURE(threads, name(site));
    REQUIRE(launch(*rig.backend, *gates).none_live());
  }
  REQUIRE(rig.units() == 0);
  REQUIRE(rig.table.listener().refusals().size() == 1);
}

TEST_CASE(
    "backend: if the engine's lease is revoked mid-launch each thread begins at most one unit") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const bool in_attention = GENERATE(false, true);
  SmallStep step(test_seed());
  SeededRandom random(test_seed());
  const Matrix wide(random, TensorType::F32, 400, 1024);
  std::vector<float> x(12 * 1024);
  std::vector<float> out(12 * 400);
  FakeTable* table = nullptr;
  // A kernel is one unit, so there are few; the first one is the upload of begin_step.
  ActAtUnit probe(threads == kCuda ? 1 : 5, [&] { table->revoke(FakeTable::kEngineSlot); });
  Rig rig(threads, &probe);
  table = &rig.table;
  const auto gates = rig.table.step(3);
  const LaunchStatus status =
      in_attention ? step.attention(*rig.backend, *gates)
                   : rig.backend->matmul(step.context(*gates), {.site = LaunchSite::LmHead,
                                                                .weight = wide.view(),
                                                                .x = x.data(),
                                                                .out = out.data()});
  CAPTURE(threads, in_attention);
  REQUIRE(probe.acted());
  REQUIRE(status.none_live());
  REQUIRE(probe.most_after() <= (threads < 2 ? 0 : 1));
}

TEST_CASE("backend: every unit announces what it can reach") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  class Watch final : public GateProbe {
   public:
    void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t layer,
                     SequenceMask) override {
      const Touches touches = touches_of(table->announcement_of(thread));
      const std::scoped_lock lock(mutex_);
      if (layer == 0 && site == LaunchSite::Embedding) return;  // the upload of a step to a device
      seen[site] = touches;
      right_layer = right_layer && layer == 1;
    }
    FakeTable* table = nullptr;
    std::map<LaunchSite, Touches> seen;
    bool right_layer = true;

   private:
    std::mutex mutex_;
  } watch;
  Rig rig(threads, &watch);
  watch.table = &rig.table;
  SmallStep step(test_seed());
  const auto gates = rig.table.step(3);
  for (const auto& [site, launch] : step.every_launch()) launch(*rig.backend, *gates);

  std::map<LaunchSite, Touches> expected{{LaunchSite::WeightLoad, Touches::WeightsAndScratch},
                                         {LaunchSite::Embedding, Touches::WeightsAndScratch},
                                         {LaunchSite::QueryProjection, Touches::TenantMemory},
                                         {LaunchSite::KvAppend, Touches::TenantMemory},
                                         {LaunchSite::AttentionScores, Touches::TenantMemory},
                                         {LaunchSite::AttentionMerge, Touches::WeightsAndScratch},
                                         {LaunchSite::FfnNorm, Touches::WeightsAndScratch},
                                         {LaunchSite::ExpertRouting, Touches::WeightsAndScratch},
                                         {LaunchSite::ExpertUp, Touches::WeightsAndScratch},
                                         {LaunchSite::ExpertSum, Touches::WeightsAndScratch},
                                         {LaunchSite::FfnUp, Touches::WeightsAndScratch},
                                         {LaunchSite::SwiGlu, Touches::WeightsAndScratch},
                                         {LaunchSite::Commit, Touches::TenantMemory}};
  // On the CPU backend the unit that completes a row merges it, unless its context is long.
  if (threads != 0 && threads != kCuda) expected.erase(LaunchSite::AttentionMerge);
  REQUIRE(watch.seen == expected);
  REQUIRE(watch.right_layer);
  for (std::uint32_t t = 0; t < gates_of(threads); ++t)
    REQUIRE(touches_of(rig.table.announcement_of(t)) == Touches::Nothing);
}

TEST_CASE("backend: a copy is complete, and a copy into tenant memory stops with its tenant") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  SmallStep step(test_seed());
  const auto gates = rig.table.step(3);
  rig.table.revoke(FakeTable::slot_of(kDead));
  REQUIRE(step.copy(*rig.backend, *gates, LaunchSite::Commit).live == kSurvivors);
  const std::byte* copied = step.copied.bytes();
  REQUIRE(std::all_of(copied, copied + 200'000, [](std::byte b) { return b == std::byte{0}; }));
  step.copy(*rig.backend, *gates, LaunchSite::WeightLoad);
  REQUIRE(std::equal(copied, copied + 200'000, step.bytes.begin()));
}

}  // namespace leasehold::testing
