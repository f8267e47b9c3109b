/// Convolutions and recurrences: the formulas, with the same bits on every backend and in any
/// chunks.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/contract/backend/rig.hpp"
#include "tests/support/state_copies.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTexts = 3;
constexpr std::uint32_t kTextRows = 11;  // of each sequence
constexpr std::uint32_t kTaps = 4;

struct RecurrentShape {
  RecurrenceRule rule;
  std::uint32_t n_groups;
  std::uint32_t n_heads;
  std::uint32_t key_dim;
  std::uint32_t value_dim;
  bool alternates_groups = false;

  std::uint32_t keys() const { return n_groups * key_dim; }
  std::uint32_t values() const { return n_heads * value_dim; }
  std::uint32_t channels() const { return 2 * keys() + values(); }
};

/// Widths with and without whole registers, and so large that a unit takes few rows.
constexpr RecurrentShape kRecurrentShapes[] = {
    {RecurrenceRule::Delta, 2, 4, 16, 16, true}, {RecurrenceRule::Delta, 2, 4, 7, 37},
    {RecurrenceRule::Delta, 1, 1, 128, 128},     {RecurrenceRule::Mamba2, 2, 4, 16, 24},
    {RecurrenceRule::Mamba2, 1, 3, 128, 150},
};

/// The state of a sequence, in memory of its own.
struct SequenceState {
  LeasedMemory memory;
  StateCopies copies;

  SequenceState(const StateLayout& layout, std::uint64_t block_bytes)
      : memory(2 * layout.blocks() * block_bytes),
        copies(blocks(0, layout.blocks(), block_bytes),
               blocks(layout.blocks(), layout.blocks(), block_bytes)) {}

 private:
  StateCopies::Blocks blocks(std::uint32_t first, std::uint32_t n, std::uint64_t bytes) const {
    StateCopies::Blocks all;
    for (std::uint32_t i = first; i < first + n; ++i) all.push_back(memory.at(i * bytes));
    return all;
  }
};

/// A vector of weights in leased memory.
struct LeasedVector {
  std::vector<float> values;
  LeasedMemory memory;

  explicit LeasedVector(std::vector<float> all)
      : values(std::move(all)), memory(values.size() * sizeof(float)) {
    memory.fill<float>(values);
  }
  Leased<const float> view() const { return memory.at().as<const float>(); }
};

/// A layer with three sequences.
class RecurrentCase {
 public:
  RecurrentCase(const RecurrentShape& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        state_shape_{.n_heads = shape.n_heads,
                     .head_floats = shape.key_dim * shape.value_dim,
                     .convolution_floats = (kTaps - 1) * shape.channels()},
        block_bytes_(StateLayout::largest_piece_bytes({&state_shape_, 1})),
        layout_({&state_shape_, 1}, block_bytes_),
        input_(random_floats(random_, kTexts * kTextRows * shape.channels(), 2.0F)),
        steps_(random_floats(random_, kTexts * kTextRows * shape.n_heads, 3.0F)),
        weights_(random_floats(random_, kTexts * kTextRows * shape.n_heads, 3.0F)),
        taps_(random_floats(random_, shape.channels() * kTaps)),
        bias_(random_floats(random_, shape.channels())),
        step_bias_(random_floats(random_, shape.n_heads)),
        skip_(random_floats(random_, shape.n_heads)),
        rates_([&] {
          std::vector<float> rates = random_floats(random_, shape.n_heads, 2.0F);
          for (float& rate : rates) rate = -std::abs(rate);
          return rates;
        }()) {}

  /// The outputs of all rows, `chunk` rows of each sequence in a step. Sequence `dead` is revoked
  /// before the first step.
  std::vector<float> outputs(Rig& rig, std::uint32_t chunk, std::uint32_t dead = kTexts) {
    std::vector<std::unique_ptr<SequenceState>> states;
    for (std::uint32_t s = 0; s < kTexts; ++s)
      states.push_back(std::make_unique<SequenceState>(layout_, block_bytes_));
    if (dead < kTexts) states[dead]->memory.forbid_access();
    std::vector<float> out(kTexts * kTextRows * shape_.values());
    for (std::uint32_t first = 0; first < kTextRows; first += chunk)
      run_step(rig, states, first, std::min(chunk, kTextRows - first), dead, out);
    return out;
  }

  /// The same in doubles.
  std::vector<double> expected() const;

 private:
  using States = std::vector<std::unique_ptr<SequenceState>>;

  /// Rows [first, first + count) of each sequence of an array with `width` elements per row.
  std::vector<float> rows_of(const std::vector<float>& all, std::size_t width, std::uint32_t first,
                             std::uint32_t count) const {
    std::vector<float> rows;
    for (std::size_t s = 0; s < kTexts; ++s) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>((s * kTextRows + first) * width);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(count * width));
    }
    return rows;
  }
  void run_step(Rig& rig, States& states, std::uint32_t first, std::uint32_t count,
                std::uint32_t dead, std::vector<float>& out);
  LaunchStatus mix(Backend& backend, const LaunchContext& context,
                   std::span<const StateTableView> tables, std::vector<float>& x,
                   std::vector<float>& steps, std::vector<float>& weights, float* out) const;

  RecurrentShape shape_;
  SeededRandom random_;
  StateShape state_shape_;
  std::uint64_t block_bytes_;
  StateLayout layout_;
  std::vector<float> input_;
  std::vector<float> steps_;
  std::vector<float> weights_;
  LeasedVector taps_;
  LeasedVector bias_;
  LeasedVector step_bias_;
  LeasedVector skip_;
  LeasedVector rates_;
};

LaunchStatus RecurrentCase::mix(Backend& backend, const LaunchContext& context,
                                std::span<const StateTableView> tables, std::vector<float>& x,
                                std::vector<float>& steps, std::vector<float>& weights,
                                float* out) const {
  std::vector<float> convolved(x.size());
  const bool is_delta = shape_.rule == RecurrenceRule::Delta;
  LaunchStatus status = backend.convolution(context, {.x = x.data(),
                                                      .out = convolved.data(),
                                                      .n_channels = shape_.channels(),
                                                      .n_taps = kTaps,
                                                      .weight = taps_.view(),
                                                      .bias = bias_.view(),
                                                      .applies_silu = true,
                                                      .piece = layout_.pieces(0).back(),
                                                      .state_tables = tables});
  return status &= backend.recurrence(
             context, {.rule = shape_.rule,
                       .x = convolved.data(),
                       .row_width = shape_.channels(),
                       .query_offset = is_delta ? 0 : shape_.values() + shape_.keys(),
                       .key_offset = is_delta ? shape_.keys() : shape_.values(),
                       .value_offset = is_delta ? 2 * shape_.keys() : 0,
                       .n_groups = shape_.n_groups,
                       .n_heads = shape_.n_heads,
                       .key_dim = shape_.key_dim,
                       .value_dim = shape_.value_dim,
                       .alternates_groups = shape_.alternates_groups,
                       .steps = steps.data(),
                       .weights = weights.data(),
                       .step_bias = step_bias_.view(),
                       .decay_rates = rates_.view(),
                       .skip = is_delta ? Leased<const float>{} : skip_.view(),
                       .epsilon = 1e-6F,
                       .out = out,
                       .pieces = layout_.pieces(0),
                       .state_tables = tables});
}

void RecurrentCase::run_step(Rig& rig, States& states, std::uint32_t first, std::uint32_t count,
                             std::uint32_t dead, std::vector<float>& out) {
  std::vector<StateTableView> tables;
  std::vector<RowRef> rows;
  for (std::uint32_t s = 0; s < kTexts; ++s) {
    tables.push_back(states[s]->copies.next());
    for (std::uint32_t i = 0; i < count; ++i) rows.push_back({s, first + i});
  }
  auto x = rows_of(input_, shape_.channels(), first, count);
  auto steps = rows_of(steps_, shape_.n_heads, first, count);
  auto weights = rows_of(weights_, shape_.n_heads, first, count);
  std::vector<float> values(rows.size() * shape_.values());
  const auto gates = rig.table.step(kTexts);
  if (dead < kTexts) rig.table.revoke(FakeTable::slot_of(dead));
  const LaunchContext context{.gates = gates.get(), .rows = rows, .layer = 1};
  const LaunchStatus status = mix(*rig.backend, context, tables, x, steps, weights, values.data());
  const SequenceMask all = gates->all();
  REQUIRE(status.live == (dead < kTexts ? all & ~(SequenceMask{1} << dead) : all));
  const std::size_t width = shape_.values();
  for (std::size_t s = 0; s < kTexts; ++s)
    if (s != dead)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(s * count * width), count * width,
                  out.begin() + static_cast<std::ptrdiff_t>((s * kTextRows + first) * width));
}

std::vector<double> RecurrentCase::expected() const {
  const std::size_t channels = shape_.channels();
  const bool is_delta = shape_.rule == RecurrenceRule::Delta;
  std::vector<double> all;
  for (std::size_t s = 0; s < kTexts; ++s) {
    std::vector<std::vector<double>> state(shape_.n_heads,
                                           std::vector<double>(shape_.key_dim * shape_.value_dim));
    for (std::size_t r = 0; r < kTextRows; ++r) {
      std::vector<double> x(channels);
      for (std::size_t c = 0; c < channels; ++c) {
        double sum = bias_.values[c];
        for (std::size_t back = 0; back < kTaps && back <= r; ++back)
          sum += double{taps_.values[c * kTaps + kTaps - 1 - back]} *
                 input_[(s * kTextRows + r - back) * channels + c];
        x[c] = sum / (1 + std::exp(-sum));
      }
      for (std::uint32_t h = 0; h < shape_.n_heads; ++h) {
        const std::size_t at = (s * kTextRows + r) * shape_.n_heads + h;
        const double step = std::log1p(std::exp(double{steps_[at]} + step_bias_.values[h]));
        const double decay = std::exp(step * rates_.values[h]);
        const std::uint32_t sharing = shape_.n_heads / shape_.n_groups;
        const std::uint32_t group = shape_.alternates_groups ? h % shape_.n_groups : h / sharing;
        const double* q =
            &x[(is_delta ? 0 : shape_.values() + shape_.keys()) + group * shape_.key_dim];
        const double* k = &x[(is_delta ? shape_.keys() : shape_.values()) + group * shape_.key_dim];
        const double* v = &x[(is_delta ? 2 * shape_.keys() : 0) + h * shape_.value_dim];
        double q_length = 1, k_length = 1;
        if (is_delta) {
          double q_squares = 1e-6, k_squares = 1e-6;
          for (std::size_t i = 0; i < shape_.key_dim; ++i) {
            q_squares += q[i] * q[i];
            k_squares += k[i] * k[i];
          }
          q_length = std::sqrt(q_squares * shape_.key_dim);
          k_length = std::sqrt(k_squares);
        }
        const double weight = is_delta ? 1 / (1 + std::exp(-double{weights_[at]})) : step;
        for (std::size_t j = 0; j < shape_.value_dim; ++j) {
          const auto m = [&](std::size_t i) -> double& {
            return state[h][i * shape_.value_dim + j];
          };
          double known = 0;
          for (std::size_t i = 0; i < shape_.key_dim; ++i) known += decay * m(i) * k[i] / k_length;
          const double update = weight * (is_delta ? v[j] - known : v[j]);
          double y = is_delta ? 0 : skip_.values[h] * v[j];
          for (std::size_t i = 0; i < shape_.key_dim; ++i) {
            m(i) = decay * m(i) + k[i] / k_length * update;
            y += m(i) * q[i] / q_length;
          }
          all.push_back(y);
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("backend: a recurrence is the formula, with the reference's bits in any chunks") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  Rig rig(threads);
  Rig reference(0);
  for (const RecurrentShape& shape : kRecurrentShapes) {
    RecurrentCase layer(shape, test_seed() + 670);
    CAPTURE(threads, static_cast<int>(shape.rule), shape.key_dim, shape.value_dim);
    const std::vector<float> whole = layer.outputs(reference, kTextRows);
    for (const std::uint32_t chunk : {kTextRows, 1u, 3u})
      REQUIRE(first_difference(layer.outputs(rig, chunk), whole) == -1);
    const std::vector<double> expected = layer.expected();
    double scale = 0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < whole.size(); ++i)
      REQUIRE(whole[i] == Approx(expected[i]).margin(2e-6 * scale));
  }
}

TEST_CASE("backend: the recurrent state of a dead sequence is not touched") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const std::uint32_t dead = GENERATE(0u, 1u, 2u);
  CAPTURE(threads, dead);
  Rig rig(threads);
  RecurrentCase layer(kRecurrentShapes[0], test_seed() + 680);
  const std::vector<float> all = layer.outputs(rig, 4);
  const std::vector<float> survivors = layer.outputs(rig, 4, dead);
  const std::size_t each = all.size() / kTexts;
  for (std::size_t i = 0; i < all.size(); ++i)
    REQUIRE(survivors[i] == (i / each == dead ? 0.0F : all[i]));
}

TEST_CASE("backend: gates multiply the inputs and the outputs of a convolution") {
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  constexpr std::uint32_t kChannels = 70;
  SeededRandom random(test_seed() + 690);
  Rig rig(threads);
  const StateShape shape{.convolution_floats = 2 * kChannels};
  const StateLayout layout({&shape, 1}, 2 * kChannels * sizeof(float));
  const LeasedVector taps(random_floats(random, 3 * kChannels));
  const auto rows = rows_of({5}, {5});
  const auto x = random_floats(random, 5 * kChannels);
  const auto before = random_floats(random, 5 * kChannels);
  const auto behind = random_floats(random, 5 * kChannels);
  const auto run = [&](std::uint32_t chunk) {
    SequenceState state(layout, 2 * kChannels * sizeof(float) + 16);
    std::vector<float> out(x.size());
    for (std::uint32_t first = 0; first < 5; first += chunk) {
      const std::uint32_t n = std::min(chunk, 5 - first);
      const StateTableView table = state.copies.next();
      const std::vector<RowRef> some(rows.begin() + first, rows.begin() + first + n);
      run_step(rig, some, [&](Backend& backend, const LaunchContext& context) {
        return backend.convolution(context, {.x = &x[first * kChannels],
                                             .input_gate = &before[first * kChannels],
                                             .output_gate = &behind[first * kChannels],
                                             .out = &out[first * kChannels],
                                             .n_channels = kChannels,
                                             .n_taps = 3,
                                             .weight = taps.view(),
                                             .piece = layout.pieces(0)[0],
                                             .state_tables = {&table, 1}});
      });
    }
    return out;
  };
  const std::vector<float> out = run(5);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 0;
    for (std::size_t back = 0; back < 3 && back * kChannels <= i; ++back) {
      const std::size_t at = i - back * kChannels;
      sum += double{taps.values[i % kChannels * 3 + 2 - back]} * x[at] * before[at];
    }
    REQUIRE(out[i] == Approx(sum * behind[i]).margin(1e-6));
  }
  REQUIRE(first_difference(run(1), out) == -1);
  REQUIRE(first_difference(run(2), out) == -1);
}

}  // namespace leasehold::testing
