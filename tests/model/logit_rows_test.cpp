/// Rows of a step that want no logits.
#include <algorithm>
#include <map>
#include <mutex>

#include "tests/model/matrix.hpp"
#include "tests/support/required.hpp"
#include "worker/model/row_range.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kRows = 48;

/// Counts the units of a layer by site.
class LayerUnits final : public GateProbe {
 public:
  explicit LayerUnits(std::uint16_t layer) : layer_(layer) {}
  void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t layer, SequenceMask) override {
    const std::scoped_lock lock(mutex_);
    if (layer == layer_) ++units_[site];
  }
  std::uint32_t of(LaunchSite site) const {
    const auto found = units_.find(site);
    return found == units_.end() ? 0 : found->second;
  }

 private:
  std::uint16_t layer_;
  std::mutex mutex_;
  std::map<LaunchSite, std::uint32_t> units_;
};

/// Revokes a sequence in the first unit of a layer's attention.
class RevokeInLastLayer final : public GateProbe {
 public:
  RevokeInLastLayer(std::uint16_t layer, std::uint32_t victim) : layer_(layer), victim_(victim) {}
  void unit_polled(std::uint32_t, LaunchSite site, std::uint16_t layer,
                   SequenceMask live) override {
    if (layer != layer_ || site != LaunchSite::AttentionScores) return;
    if (units_++ == 0) return model->revoke(victim_);
    live_after_ |= live;
  }
  /// Sequences that a later unit of attention found live.
  SequenceMask live_after() const { return live_after_; }

  LocalModel* model = nullptr;

 private:
  std::uint16_t layer_;
  std::uint32_t victim_;
  int units_ = 0;
  SequenceMask live_after_ = 0;
};

LocalOptions options_of(Arithmetic arithmetic) {
  return {.model_path = matrix_model("stories260K-q8_0"),
          .arithmetic = arithmetic,
          .max_rows = kRows,
          .positions = kRows};
}

/// Rows [0, kRows) of a text. Those in `wanted` want logits.
std::vector<LocalRow> rows_with(const std::vector<std::uint32_t>& wanted) {
  const std::vector<TokenId> tokens = matrix_text(kRows);
  std::vector<LocalRow> rows;
  for (std::uint32_t i = 0; i < kRows; ++i)
    rows.push_back({.token = tokens[i], .wants_logits = std::ranges::binary_search(wanted, i)});
  return rows;
}

std::vector<std::vector<float>> logits_of(LocalModel& model,
                                          const std::vector<std::uint32_t>& wanted) {
  model.restart(0);
  REQUIRE(model.forward(rows_with(wanted)));
  std::vector<std::vector<float>> all;
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    const auto logits = model.logits(i);
    all.emplace_back(logits.begin(), logits.end());
  }
  return all;
}

std::vector<RowRange> ranges_of(const std::vector<std::uint32_t>& rows, std::uint32_t between) {
  std::vector<RowRange> ranges;
  for (std::span<const std::uint32_t> left(rows); !left.empty();)
    ranges.push_back(take_range(left, between));
  return ranges;
}

}  // namespace

TEST_CASE("logit rows: logits have the same bits whichever other rows want some") {
  const Arithmetic arithmetic = GENERATE(Arithmetic::F32, Arithmetic::Int8);
  auto options = options_of(arithmetic);
  options.reference = GENERATE(false, true);
  const auto model = required(LocalModel::load(std::move(options)));
  std::vector<std::uint32_t> every(kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) every[i] = i;
  const auto expected = logits_of(*model, every);
  const std::vector<std::uint32_t> wanted =
      GENERATE(std::vector<std::uint32_t>{kRows - 1}, std::vector<std::uint32_t>{0},
               std::vector<std::uint32_t>{3, 4, 9, 30, 46});
  const auto some = logits_of(*model, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(wanted[i]);
    REQUIRE(some[i] == expected[wanted[i]]);
  }
}

TEST_CASE("logit rows: other rows end with the keys and values of the last layer") {
  auto options = options_of(Arithmetic::F32);
  options.reference = true;  // a unit per row, or per row and head
  const ModelConfig config = required(LocalModel::load(options))->config();
  const auto last = static_cast<std::uint16_t>(config.n_layers - 1);
  const auto units = [&](std::uint16_t layer, const std::vector<std::uint32_t>& wanted) {
    LayerUnits probe(layer);
    options.probe = &probe;
    const auto model = required(LocalModel::load(options));
    REQUIRE(model->forward(rows_with(wanted)));
    REQUIRE(probe.of(LaunchSite::KvAppend) == kRows);
    return std::pair(probe.of(LaunchSite::AttentionScores), probe.of(LaunchSite::FfnNorm));
  };
  CHECK(units(last, {}) == std::pair(0u, 0u));
  CHECK(units(last, {kRows - 1}) == std::pair(config.n_heads, 1u));
  CHECK(units(last, {0, 1, kRows - 1}) == std::pair(3 * config.n_heads, 3u));
  CHECK(units(last - 1, {kRows - 1}) == std::pair(kRows * config.n_heads, kRows));
}

TEST_CASE("logit rows: neighbours are computed together, with a few rows between them") {
  CHECK(ranges_of({}, 8).empty());
  CHECK(ranges_of({0, 1, 2}, 8) == std::vector<RowRange>{{0, 3}});
  CHECK(ranges_of({5, 14, 23}, 8) == std::vector<RowRange>{{5, 24}});
  CHECK(ranges_of({5, 15, 16}, 8) == std::vector<RowRange>{{5, 6}, {15, 17}});
  CHECK(ranges_of({5, 15, 16}, 9) == std::vector<RowRange>{{5, 17}});
}

TEST_CASE("logit rows: more threads compute more rows between wanted ones") {
  CHECK(max_row_gap(1) == 8);
  CHECK(max_row_gap(2) == 8);
  CHECK(max_row_gap(16) == 64);
  auto options = options_of(Arithmetic::F32);
  const ModelConfig config = required(LocalModel::load(options))->config();
  LayerUnits probe(static_cast<std::uint16_t>(config.n_layers - 1));
  options.probe = &probe;
  const auto scored_by = [&](std::uint32_t threads) {
    options.threads = threads;
    const std::uint32_t before = probe.of(LaunchSite::AttentionScores);
    REQUIRE(required(LocalModel::load(options))->forward(rows_with({0, 17})));
    return probe.of(LaunchSite::AttentionScores) - before;
  };
  CHECK(scored_by(2) == 2 * config.n_kv_heads);  // of one row each
  CHECK(scored_by(4) > 2 * config.n_kv_heads);   // of all 18
}

/// One sequence's row is in the first range of the last layer, the other's in the second.
TEST_CASE("logit rows: a sequence that dies in a range ends there, and the other keeps its bits") {
  constexpr std::uint32_t kEach = kRows / 2;
  auto options = options_of(GENERATE(Arithmetic::F32, Arithmetic::Int8));
  options.reference = GENERATE(false, true);
  options.sequences = 2;
  const std::vector<TokenId> tokens = matrix_text(kRows);
  std::vector<LocalRow> rows;
  for (std::uint32_t i = 0; i < kRows; ++i)
    rows.push_back({.sequence = i / kEach,
                    .token = tokens[i],
                    .wants_logits = i == kEach - 1 || i == kRows - 1});
  const auto calm = required(LocalModel::load(options));
  REQUIRE(calm->forward(rows));

  const std::uint32_t victim = GENERATE(0, 1);
  const std::uint32_t survivor = 1 - victim;
  RevokeInLastLayer probe(static_cast<std::uint16_t>(calm->config().n_layers - 1), victim);
  options.probe = &probe;
  const auto model = required(LocalModel::load(options));
  probe.model = model.get();
  REQUIRE(model->forward(rows));
  CAPTURE(options.reference, victim);
  CHECK(model->live() == SequenceMask{1} << survivor);
  CHECK(std::ranges::equal(model->logits(survivor), calm->logits(survivor)));
  // What follows attention reads no tenant's memory, so it goes on with what was there before.
  CHECK_FALSE(std::ranges::equal(model->logits(victim), calm->logits(victim)));
  CHECK(probe.live_after() == SequenceMask{1} << survivor);
}

}  // namespace leasehold::testing
