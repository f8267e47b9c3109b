/// Operators of layers with recurrent state.
#include <algorithm>

#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/recurrent_rows.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace leasehold {
namespace {

struct PlainLoops {
  static void convolve(const ConvolvedChannels& channels) { convolve_channels(channels); }
  static void silu(float* x, std::uint32_t n) { std::transform(x, x + n, x, leasehold::silu); }
};

}  // namespace

LaunchStatus ReferenceBackend::convolution(const LaunchContext& context,
                                           const ConvolutionArgs& args) {
  expect_within_limits(limits_, context, args);
  return each_unit(context, label(context, LaunchSite::Convolution, Touches::TenantMemory),
                   context.rows.size(), [&](const LaunchPermit& permit, std::size_t r) {
                     if (!permit.is_live(context.rows[r].sequence)) return;
                     convolve_row(permit, context, args, static_cast<std::uint32_t>(r),
                                  {0, args.n_channels}, PlainLoops{});
                   });
}

/// A unit of the second launch is one head of one row.
LaunchStatus ReferenceBackend::recurrence(const LaunchContext& context,
                                          const RecurrenceArgs& args) {
  expect_within_limits(limits_, context, args);
  const auto prepare = [&](const LaunchPermit& permit, std::size_t unit) {
    const auto r = static_cast<std::uint32_t>(unit);
    weigh_steps(permit, args, r);
    each_query_and_key(args, r, [&](float* x, float length) {
      scale_to_length(x, args.key_dim, ordered_dot(x, x, args.key_dim), args.epsilon, length);
    });
  };
  const auto advance = [&](const LaunchPermit& permit, std::size_t unit) {
    const auto r = static_cast<std::uint32_t>(unit / args.n_heads);
    const auto h = static_cast<std::uint32_t>(unit % args.n_heads);
    const std::uint32_t sequence = context.rows[r].sequence;
    if (!permit.is_live(sequence)) return;
    const bool is_first = rows_before(context.rows, r, 1) == 0;
    const StateHead head = state_head(permit, args, sequence, h, is_first);
    const StateRow row = state_row(args, r, h);
    for (std::uint32_t j = 0; j < args.value_dim; ++j) advance_column(head, row, j);
  };
  LaunchStatus status =
      each_unit(context, label(context, LaunchSite::StateUpdate), context.rows.size(), prepare);
  if (status.none_live()) return status;
  return status &=
         each_unit(context, label(context, LaunchSite::StateUpdate, Touches::TenantMemory),
                   context.rows.size() * args.n_heads, advance);
}

}  // namespace leasehold
