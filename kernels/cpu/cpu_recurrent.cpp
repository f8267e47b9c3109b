/// Operators of layers with recurrent state.
#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/recurrent_rows.hpp"

namespace leasehold {
namespace {

/// Rows of a sequence that one unit advances.
inline constexpr std::uint32_t kMostRowsAtOnce = 64;

float squares_of(const RowKernels& kernels, const float* x, std::uint32_t n) {
  DotTile tile{.type = TensorType::F32,
               .weights = {reinterpret_cast<const std::byte*>(x)},
               .n_outputs = 1,
               .x = {x},
               .n_inputs = 1,
               .n = n};
  DotProducts products;
  kernels.dot_tile(tile, products);
  return products[0][0][0];
}

/// The loops of convolve_row.
struct ChannelLoops {
  const RowKernels& kernels;

  void convolve(const ConvolvedChannels& channels) const { kernels.convolve(channels); }
  /// silu(x) · 1 has the bits of silu(x).
  void silu(float* x, std::uint32_t n) const {
    static constexpr auto kOnes = [] {
      std::array<float, 256> ones;
      ones.fill(1.0F);
      return ones;
    }();
    for (std::uint32_t at = 0; at < n; at += kOnes.size())
      kernels.swiglu(Activation::SwiGlu, x + at, kOnes.data(),
                     std::min<std::size_t>(kOnes.size(), n - at));
  }
};

/// Rows [first, first + count) of the sequences that have them.
struct RowsInTurn {
  std::array<SequenceRows, kMaxStepSequences> parts;
  std::uint32_t n_parts = 0;

  RowsInTurn(const SequenceList& sequences, std::uint32_t first, std::uint32_t count) {
    for (const SequenceRows& all : sequences.all())
      if (all.count > first)
        parts[n_parts++] = {.sequence = all.sequence,
                            .first_row = all.first_row + first,
                            .count = std::min(count, all.count - first)};
  }
};

}  // namespace

/// A row may exceed a tile, so tiles ignore row boundaries.
LaunchStatus CpuBackend::convolution(const LaunchContext& context, const ConvolutionArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  const std::uint64_t macs = args.n_taps * kMacsPerElement + (args.applies_silu ? kMacsPerExp : 0);
  return cpu_.each_part(
      context, label(context, LaunchSite::Convolution, Touches::TenantMemory),
      context.rows.size() * args.n_channels, macs, [&](const LaunchPermit& permit, Span32 span) {
        for (std::uint32_t at = span.begin; at < span.end;) {
          const std::uint32_t r = at / args.n_channels;
          const std::uint32_t first = at % args.n_channels;
          const std::uint32_t count = std::min(args.n_channels - first, span.end - at);
          if (permit.is_live(context.rows[r].sequence))
            convolve_row(permit, context, args, r, {first, first + count},
                         ChannelLoops{cpu_.kernels});
          at += count;
        }
      });
}

LaunchStatus CpuBackend::recurrence(const LaunchContext& context, const RecurrenceArgs& args) {
  expect_within_limits(cpu_.limits, context, args);
  const std::uint64_t elements = std::uint64_t{2} * args.n_groups * args.key_dim;
  LaunchStatus status =
      cpu_.each_row(context, label(context, LaunchSite::StateUpdate),
                    elements * 2 + args.n_heads * 4 * kMacsPerExp,
                    [&](const LaunchPermit& permit, std::size_t r) {
                      const auto row = static_cast<std::uint32_t>(r);
                      weigh_steps(permit, args, row);
                      each_query_and_key(args, row, [&](float* x, float length) {
                        scale_to_length(x, args.key_dim, squares_of(cpu_.kernels, x, args.key_dim),
                                        args.epsilon, length);
                      });
                    });
  const SequenceList sequences(context.rows);
  std::uint32_t most = 0;
  for (const SequenceRows& all : sequences.all()) most = std::max(most, all.count);
  const std::uint32_t at_once = rows_at_once(args);
  for (std::uint32_t first = 0; first < most && !status.none_live(); first += at_once)
    status &= advance(context, args, sequences, {first, first + at_once});
  return status;
}

std::uint32_t CpuBackend::rows_at_once(const RecurrenceArgs& args) const {
  const std::uint64_t macs = std::uint64_t{3} * args.key_dim * args.value_dim;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(cpu_.kernels.state_tile_macs / macs, 1, kMostRowsAtOnce));
}

/// A unit is one head of the rows of one sequence. A launch ends before the next rows begin, which
/// read the state that these write.
LaunchStatus CpuBackend::advance(const LaunchContext& context, const RecurrenceArgs& args,
                                 const SequenceList& sequences, Span32 rows) {
  const RowsInTurn in_turn(sequences, rows.begin, rows.end - rows.begin);
  const auto advance_head = [&](const LaunchPermit& permit, std::uint32_t, std::uint32_t tile) {
    const SequenceRows& part = in_turn.parts[tile / args.n_heads];
    const std::uint32_t h = tile % args.n_heads;
    if (!permit.is_live(part.sequence)) return;
    StateRow state_rows[kMostRowsAtOnce];
    for (std::uint32_t i = 0; i < part.count; ++i)
      state_rows[i] = state_row(args, part.first_row + i, h);
    cpu_.kernels.advance_state(state_head(permit, args, part.sequence, h, rows.begin == 0),
                               state_rows, part.count);
  };
  return cpu_.launcher.run(context, label(context, LaunchSite::StateUpdate, Touches::TenantMemory),
                           in_turn.n_parts * args.n_heads, advance_head);
}

}  // namespace leasehold
