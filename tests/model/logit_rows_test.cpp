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

std::vector<RowRange> ranges_of(const std::vector<std::uint32_t>& rows) {
  std::vector<RowRange> ranges;
  for (std::span<const std::uint32_t> left(rows); !left.empty();)
    ranges.push_back(take_neighbours(left));
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

TEST_CASE("logit rows: neighbours are computed together, with up to eight rows between them") {
  CHECK(ranges_of({}).empty());
  CHECK(ranges_of({0, 1, 2}) == std::vector<RowRange>{{0, 3}});
  CHECK(ranges_of({5, 14, 23}) == std::vector<RowRange>{{5, 24}});
  CHECK(ranges_of({5, 15, 16}) == std::vector<RowRange>{{5, 6}, {15, 17}});
}

}  // namespace leasehold::testing
