/// Mixture of experts on the reference backend.
#include "kernels/launch_rules.hpp"
#include "kernels/numerics/expert_routing.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/reference/reference_backend.hpp"

namespace leasehold {

LaunchStatus ReferenceBackend::expert_routing(const LaunchContext& context,
                                              const ExpertRoutingArgs& args) {
  expect_within_limits(limits_, context);
  return each_unit(context, label(context, LaunchSite::ExpertRouting), context.rows.size(),
                   [&](const LaunchPermit& permit, std::size_t r) {
                     select_experts(args, open_or_null(permit, args.selection_bias), r);
                   });
}

LaunchStatus ReferenceBackend::expert_matmul(const LaunchContext& context,
                                             const ExpertMatmulArgs& args) {
  expect_within_limits(limits_, context, args);
  if (args.weight.layout == MatrixLayout::RowGroups) return expert_matmul_int8(context, args);
  const std::uint32_t n_out = args.n_out();
  const ExpertItems batch = groups_.sort({args.chosen, args.n_items});
  LaunchStatus status{context.gates->all()};
  for (std::uint32_t expert = 0; expert < args.n_experts && !status.none_live(); ++expert) {
    const auto items =
        batch.items.subspan(batch.first[expert], batch.first[expert + 1] - batch.first[expert]);
    const auto weight_row = [&](const LaunchPermit& permit, std::size_t o) {
      const auto index = static_cast<std::uint32_t>(expert * n_out + o);
      dequantize_row(args.weight.type, matrix_row(permit, args.weight, index), row_.data(),
                     args.weight.n_in);
      for (const std::uint32_t item : items) {
        const float dot = ordered_dot(row_.data(), item_row(args, item), args.weight.n_in);
        args.out[std::size_t{item} * n_out + o] =
            args.bias ? dot + permit.open(args.bias)[index] : dot;
      }
    };
    const std::uint32_t units = items.empty() ? 0 : n_out;
    status &= each_unit(context, label(context, args.site), units, weight_row);
  }
  return status;
}

/// A unit is one row group of the expert of one item. Each unit rounds the item's row again.
LaunchStatus ReferenceBackend::expert_matmul_int8(const LaunchContext& context,
                                                  const ExpertMatmulArgs& args) {
  const std::uint32_t n_in = args.weight.n_in;
  const std::uint32_t n_groups = args.n_out() / kGroupRows;
  const auto multiply_group = [&](const LaunchPermit& permit, std::size_t unit) {
    const auto item = static_cast<std::uint32_t>(unit / n_groups);
    const auto group = static_cast<std::uint32_t>(unit % n_groups);
    round_row(item_row(args, item), n_in, group_format(args.weight.type).elements,
              rounded_.buffer(0));
    const RoundedRow x = rounded_.row(0);
    const std::uint32_t of_all = args.chosen[item] * n_groups + group;
    float* out = args.out + unit * kGroupRows;
    dot_group_int8(args.weight.type, matrix_group(permit, args.weight, of_all), n_in, {&x, 1}, out);
    if (!args.bias) return;
    const float* bias = permit.open(args.bias) + std::size_t{of_all} * kGroupRows;
    for (std::uint32_t o = 0; o < kGroupRows; ++o) out[o] += bias[o];
  };
  return each_unit(context, label(context, args.site), std::size_t{args.n_items} * n_groups,
                   multiply_group);
}

LaunchStatus ReferenceBackend::weighted_sum(const LaunchContext& context,
                                            const WeightedSumArgs& args) {
  expect_within_limits(limits_, context);
  const auto sum_row = [&](const LaunchPermit&, std::size_t r) {
    float* out = args.out + r * args.width;
    if (!args.accumulate) std::fill_n(out, args.width, 0.0F);
    for (std::uint32_t k = 0; k < args.n_terms; ++k) {
      const std::size_t term = r * args.n_terms + k;
      const float weight = args.applies_sigmoid ? sigmoid(args.weights[term]) : args.weights[term];
      for (std::uint32_t i = 0; i < args.width; ++i)
        out[i] = std::fma(weight, args.x[term * args.width + i], out[i]);
    }
  };
  return each_unit(context, label(context, LaunchSite::ExpertSum), context.rows.size(), sum_row);
}

}  // namespace leasehold
