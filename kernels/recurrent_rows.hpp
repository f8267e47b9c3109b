/// Parts of the operators of recurrent layers that backends in host memory share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/launch_rules.hpp"
#include "kernels/numerics/recurrence.hpp"
#include "kernels/sequence_rows.hpp"

namespace leasehold {

/// A piece of the copy of the state that a step reads, or null for a state of zeros; valid while
/// the permit is.
inline const float* piece_before(const LaunchPermit& permit, const StateTableView& table,
                                 const StatePiece& piece) {
  if (table.from.empty()) return nullptr;
  const auto offset = static_cast<std::ptrdiff_t>(piece.offset_bytes);
  return permit.open((table.from[piece.block] + offset).as<const float>());
}
/// The same piece of the copy that a step writes.
inline float* piece_after(const LaunchPermit& permit, const StateTableView& table,
                          const StatePiece& piece) {
  const auto offset = static_cast<std::ptrdiff_t>(piece.offset_bytes);
  return permit.open((table.to[piece.block] + offset).as<float>());
}

/// Channels [begin, end) of a convolution.
struct ChannelRange {
  std::uint32_t begin;
  std::uint32_t end;
};

/// The inputs of a row's taps: rows of the step, or slots of the state, which ends with the input
/// before the sequence's first row.
class TapInputs {
 public:
  struct Tap {
    const float* x = nullptr;  // null: zeros
    const float* gate = nullptr;
  };

  TapInputs(const LaunchContext& context, const ConvolutionArgs& args, std::uint32_t r,
            const float* before)
      : n_before_(args.n_taps - 1) {
    const std::uint32_t n_here = rows_before(context.rows, r, n_before_);
    for (std::uint32_t back = 0; back <= n_before_; ++back) {
      Tap& tap = taps_[n_before_ - back];
      const std::size_t row = std::size_t{r - std::min(back, n_here)} * args.n_channels;
      if (back <= n_here)
        tap = {args.x + row, args.input_gate == nullptr ? nullptr : args.input_gate + row};
      else if (before != nullptr)
        tap = {before + std::size_t{n_before_ - (back - n_here)} * args.n_channels, nullptr};
    }
  }
  const Tap& tap(std::uint32_t t) const { return taps_[t]; }
  /// The input of tap `t` in channel `c`.
  float of(std::uint32_t t, std::uint32_t c) const {
    const Tap& tap = taps_[t];
    if (tap.x == nullptr) return 0.0F;
    return tap.gate == nullptr ? tap.x[c] : tap.x[c] * tap.gate[c];
  }

 private:
  std::uint32_t n_before_;
  std::array<Tap, ConvolutionArgs::kMaxTaps> taps_ = {};
};

/// Channels of a row's convolution. Pointers point to channel 0.
struct ConvolvedChannels {
  const TapInputs& inputs;
  std::uint32_t n_taps;
  const float* weight;  // [n_channels, n_taps]
  const float* bias;    // [n_channels], or null
  float* out;           // [n_channels]
  ChannelRange channels;
};

inline void convolve_channels(const ConvolvedChannels& all) {
  for (std::uint32_t c = all.channels.begin; c < all.channels.end; ++c)
    all.out[c] = convolve(all.weight + std::size_t{c} * all.n_taps, all.n_taps,
                          all.bias == nullptr ? 0.0F : all.bias[c],
                          [&](std::uint32_t t) { return all.inputs.of(t, c); });
}

/// Computes channels of row `r`. The last row of a sequence also stores the state of these
/// channels. `loops.convolve(channels)` acts as convolve_channels, and `loops.silu(x, n)` applies
/// the activation. Precondition: the row's sequence is live.
template <class Loops>
void convolve_row(const LaunchPermit& permit, const LaunchContext& context,
                  const ConvolutionArgs& args, std::uint32_t r, ChannelRange channels,
                  const Loops& loops) {
  const StateTableView& table = args.state_tables[context.rows[r].sequence];
  const TapInputs inputs(context, args, r, piece_before(permit, table, args.piece));
  float* out = args.out + std::size_t{r} * args.n_channels;
  loops.convolve({.inputs = inputs,
                  .n_taps = args.n_taps,
                  .weight = permit.open(args.weight),
                  .bias = open_or_null(permit, args.bias),
                  .out = out,
                  .channels = channels});
  if (args.applies_silu) loops.silu(out + channels.begin, channels.end - channels.begin);
  if (args.output_gate != nullptr) {
    const float* gate = args.output_gate + std::size_t{r} * args.n_channels;
    for (std::uint32_t c = channels.begin; c < channels.end; ++c) out[c] *= gate[c];
  }
  if (!is_last_of_sequence(context.rows, r)) return;
  float* after = piece_after(permit, table, args.piece);
  for (std::uint32_t t = 1; t < args.n_taps; ++t)
    for (std::uint32_t c = channels.begin; c < channels.end; ++c)
      after[std::size_t{t - 1} * args.n_channels + c] = inputs.of(t, c);
}

/// Turns the step inputs of row `r` into decays, and the other inputs into weights of updates.
inline void weigh_steps(const LaunchPermit& permit, const RecurrenceArgs& args, std::uint32_t r) {
  const float* bias = permit.open(args.step_bias);
  const float* rates = permit.open(args.decay_rates);
  float* steps = args.steps + std::size_t{r} * args.n_heads;
  float* weights = args.weights + std::size_t{r} * args.n_heads;
  for (std::uint32_t h = 0; h < args.n_heads; ++h) {
    const StepTerms terms =
        step_terms(steps[h] + bias[h], rates[h], weights[h], args.rule == RecurrenceRule::Delta);
    steps[h] = terms.decay;
    weights[h] = terms.weight;
  }
}

/// Scales a vector of this squared length to length `length`.
inline void scale_to_length(float* x, std::uint32_t n, float squares, float epsilon, float length) {
  const float factor = length_factor(squares, epsilon, length);
  for (std::uint32_t i = 0; i < n; ++i) x[i] *= factor;
}

/// Calls `scale(vector, length)` for each query and key of row `r`, which the delta rule scales.
template <class Scale>
void each_query_and_key(const RecurrenceArgs& args, std::uint32_t r, Scale&& scale) {
  if (args.rule != RecurrenceRule::Delta) return;
  float* row = args.x + std::size_t{r} * args.row_width;
  const float query_length = 1.0F / std::sqrt(static_cast<float>(args.key_dim));
  for (std::uint32_t g = 0; g < args.n_groups; ++g) {
    scale(row + args.query_offset + std::size_t{g} * args.key_dim, query_length);
    scale(row + args.key_offset + std::size_t{g} * args.key_dim, 1.0F);
  }
}

/// The row of a head, once its inputs are prepared.
inline StateRow state_row(const RecurrenceArgs& args, std::uint32_t r, std::uint32_t head) {
  const float* row = args.x + std::size_t{r} * args.row_width;
  const std::size_t in_group =
      std::size_t{group_of_head(head, args.n_heads, args.n_groups, args.alternates_groups)} *
      args.key_dim;
  const std::size_t at = std::size_t{r} * args.n_heads + head;
  return {.query = row + args.query_offset + in_group,
          .key = row + args.key_offset + in_group,
          .value = row + args.value_offset + std::size_t{head} * args.value_dim,
          .out = args.out + at * args.value_dim,
          .decay = args.steps[at],
          .weight = args.weights[at]};
}

/// The state of a head for a row of the step: the sequence's first one if `is_first_row`. Later
/// ones read what the earlier ones wrote.
inline StateHead state_head(const LaunchPermit& permit, const RecurrenceArgs& args,
                            std::uint32_t sequence, std::uint32_t head, bool is_first_row) {
  const StateTableView& table = args.state_tables[sequence];
  float* after = piece_after(permit, table, args.pieces[head]);
  return {.before = is_first_row ? piece_before(permit, table, args.pieces[head]) : after,
          .after = after,
          .key_dim = args.key_dim,
          .value_dim = args.value_dim,
          .skip = args.skip ? permit.open(args.skip)[head] : 0.0F,
          .is_delta = args.rule == RecurrenceRule::Delta};
}

}  // namespace leasehold
