#include "kernels/cuda/cuda_matmuls.hpp"

#include <algorithm>

#include "kernels/cuda/plan/int8_plan.hpp"

namespace leasehold::cuda {
namespace {

/// The matmul after the last launch of a layer that reaches memory of tenants.
bool follows_tenant_memory(LaunchSite site) {
  return site == LaunchSite::AttentionOutput || site == LaunchSite::MixerOutput;
}

/// A norm of whole rows whose only output is x.
bool has_plain_rows(const RmsNormArgs& norm, const MatmulArgs& matmul) {
  return norm.out == matmul.x && norm.width == matmul.weight.n_in && norm.vectors_per_row == 1 &&
         !norm.accumulate;
}

device::RowNorm row_norm(const LaunchPermit& permit, const RmsNormArgs& norm) {
  return {.x = norm.x,
          .weight = permit.open(norm.weight),
          .out_scale = open_or_null(permit, norm.out_scale),
          .width = norm.width,
          .epsilon = norm.epsilon,
          .scale = norm.scale,
          .is_centered = norm.is_centered ? 1u : 0u};
}

}  // namespace

/// Runs the group as one launch, after a launch that prepares x if necessary.
LaunchStatus CudaMatmuls::run_group(const LaunchContext& context, LaunchSite site,
                                    std::span<const PlannedMatmul> group, const Fused& fused) {
  const MatmulOperands& first = group.front().operands;
  const RowForm form = group.front().form;
  for (const PlannedMatmul& one : group) cuda_.prepared.overwrite(one.operands.out);
  const bool are_ready = cuda_.prepared.holds(first.x, first.n_in, form);
  const PreparedRows rows =
      are_ready ? cuda_.prepared.held_rows() : cuda_.prepared.prepared_rows_at(first.n_in, form);
  MatmulScratch scratch{.tiles = rows.tiles,
                        .rounded = rows.rounded,
                        .rows_are_prepared = are_ready,
                        .partials = cuda_.blocks.partials(),
                        .counters = cuda_.blocks.counters(),
                        .gated = fused.gated};
  // Prepared rows of a selection serve this launch only.
  if (!are_ready && form != RowForm::Floats && fused.norm == nullptr)
    cuda_.prepared.set(first.select == nullptr ? first.x : nullptr, first.n_in, form);
  const UnitLabel where = label(context, site);
  return cuda_.runner->launch_all(context, where, where, [&](const LaunchPermit& permit) {
    std::vector<MatmulOperands> opened;
    for (const PlannedMatmul& one : group) {
      opened.push_back(one.operands);
      opened.back().weights = permit.open(one.weight);
      if (one.bias) opened.back().bias = permit.open(one.bias);
      if (follows_tenant_memory(site))
        opened.back().gate.tenant_seen = &cuda_.launcher().reports().tenant_seen;
    }
    if (fused.norm != nullptr) scratch.norm = row_norm(permit, *fused.norm);
    return plan_matmul(opened, scratch, cuda_.card);
  });
}

/// The operands that every matmul with this matrix has.
MatmulOperands CudaMatmuls::operands_of(const LaunchContext& context,
                                        const WeightMatrix& weight) const {
  const PlanContext plan = cuda_.runner->plan_context(context);
  return {.gate = plan.gate,
          .type = weight.type,
          .layout = weight.layout,
          .is_exact = cuda_.rows == RowArithmetic::Floats,
          .n_out = weight.n_out,
          .n_in = weight.n_in,
          .n_results = plan.n_rows};
}

CudaMatmuls::PlannedMatmul CudaMatmuls::plan(const LaunchContext& context,
                                             const MatmulArgs& args) const {
  MatmulOperands operands = operands_of(context, args.weight);
  operands.x = args.x;
  operands.out = args.out;
  operands.accumulate = args.accumulate;
  if (!args.select.empty()) {
    operands.select = cuda_.step().logit_rows();
    operands.n_results = cuda_.runner->result_count(context, args);
    operands.count.is_logit_rows = 1;
  }
  return {operands, args.weight.data, args.bias, cuda_.prepared.form_for(args.weight)};
}

RowForm CudaMatmuls::form_of(const ProjectionArgs& args) const {
  for (const MatmulArgs& one : args.matmuls)
    if (const RowForm form = cuda_.prepared.form_for(one.weight); form != RowForm::Floats)
      return form;
  return RowForm::Floats;
}

bool CudaMatmuls::read_floats(const ProjectionArgs& args, RowForm prepared) const {
  return prepared == RowForm::Floats ||
         std::ranges::any_of(args.matmuls, [&](const MatmulArgs& one) {
           return cuda_.prepared.form_for(one.weight) != prepared;
         });
}

bool CudaMatmuls::norms_rows(const LaunchContext& context, const RmsNormArgs& norm,
                             std::span<const MatmulArgs> matmuls) const {
  if (!cuda_.card.starts_early || !has_plain_rows(norm, matmuls.front())) return false;
  std::vector<MatmulOperands> operands;
  for (const MatmulArgs& one : matmuls) operands.push_back(plan(context, one).operands);
  for (std::size_t first = 0; first < operands.size();) {
    const auto rest = std::span(operands).subspan(first);
    const std::size_t n = joined_matmuls(rest);
    if (!cuda::norms_rows(rest.first(n), cuda_.card)) return false;
    first += n;
  }
  return true;
}

LaunchStatus CudaMatmuls::run(const LaunchContext& context, std::span<const MatmulArgs> matmuls,
                              const RmsNormArgs* norm) {
  LaunchStatus status{context.gates->all()};
  if (norm != nullptr) cuda_.prepared.overwrite(norm->out);
  std::vector<PlannedMatmul> planned;
  std::vector<MatmulOperands> operands;
  for (const MatmulArgs& one : matmuls) {
    planned.push_back(plan(context, one));
    operands.push_back(planned.back().operands);
  }
  for (std::size_t first = 0; first < planned.size() && !status.none_live();) {
    const std::size_t n = joined_matmuls(std::span(operands).subspan(first));
    status &= run_group(context, matmuls[first].site, std::span(planned).subspan(first, n),
                        {.norm = norm});
    first += n;
  }
  return status;
}

bool CudaMatmuls::gates_products(const LaunchContext& context, const FeedForwardArgs& args) const {
  if (!args.up.weight.data || args.down.weight.layout != MatrixLayout::RowGroups) return false;
  const MatmulOperands operands[] = {plan(context, args.gate).operands,
                                     plan(context, args.up).operands};
  return cuda::gates_products(operands, block_shape(args.down.weight.type).elements, cuda_.card);
}

LaunchStatus CudaMatmuls::run_gated(const LaunchContext& context, const FeedForwardArgs& args,
                                    const RmsNormArgs* norm) {
  if (norm != nullptr) cuda_.prepared.overwrite(norm->out);
  const std::uint32_t width = args.gate.weight.n_out;
  const RowForm next = cuda_.prepared.form_for(args.down.weight);
  const PlannedMatmul group[] = {plan(context, args.gate), plan(context, args.up)};
  const LaunchStatus status =
      run_group(context, args.gate.site, group,
                {.gated = {.counters = cuda_.blocks.counters(),
                           .rounded = cuda_.prepared.rows_beside(width, next).rounded,
                           .activation = args.activation},
                 .norm = norm});
  cuda_.prepared.set_beside(args.gate.out, width, next);
  return status;
}

LaunchStatus CudaMatmuls::expert_matmul(const LaunchContext& context,
                                        const ExpertMatmulArgs& args) {
  expect_within_limits(cuda_.limits, context, args);
  const auto n_rows = static_cast<std::uint32_t>(context.rows.size());
  const std::uint32_t per_row = n_rows == 0 ? 1 : args.n_items / n_rows;
  MatmulOperands operands = operands_of(context, args.weight);
  operands.n_out = args.n_out();
  operands.x = args.x;
  operands.out = args.out;
  operands.out_stride = args.out_stride;
  operands.experts = {.chosen = args.chosen,
                      .items_per_x = args.items_per_x,
                      .n_in_turn = args.chosen == nullptr ? args.n_experts : 0};
  operands.n_experts = args.n_experts;
  operands.n_results *= per_row;
  operands.count.per_row = per_row;
  const PlannedMatmul one{operands, args.weight.data, args.bias,
                          cuda_.prepared.form_for(args.weight)};
  return run_group(context, args.site, {&one, 1}, {});
}

}  // namespace leasehold::cuda
