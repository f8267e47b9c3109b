#include "kernels/cuda/cuda_attention.hpp"

#include "kernels/cuda/device/attention_params.hpp"

namespace leasehold::cuda {
Result<CudaAttention> CudaAttention::create(CudaResources& cuda) {
  AttentionArgs largest{};
  largest.layout.head_dim = cuda.limits.head_dim;
  largest.n_heads = cuda.limits.n_heads;
  const std::size_t size_bytes =
      std::max(cuda.limits.attention_scratch_bytes,
               attention_scratch_bytes_per_row(largest, cuda.limits.max_context));
  return CudaAttention(cuda, TRY(cuda.launcher().zeroed_buffer(aligned(size_bytes))));
}

/// The parameters of the launch that prepares heads.
device::RopeKvAppendParams CudaAttention::heads_params(const HeadsArgs& args,
                                                       const LaunchPermit& permit) const {
  return {
      .gate = cuda_.runner->gate(),
      .kv = device::KvAddressing::of(args.layout, cuda_.step().block_tables(args.layout.group)),
      .q = args.q,
      .k = args.k,
      .v = args.layout.is_latent() ? nullptr : args.v,
      .q_norm = open_or_null(permit, args.query_norm),
      .k_norm = open_or_null(permit, args.key_norm),
      .cos_sin = args.uses_window_angles ? cuda_.step().window_cos_sin() : cuda_.step().cos_sin(),
      .query_scales = args.query_scales != nullptr ? cuda_.step().query_scales() : nullptr,
      .n_heads = args.n_heads,
      .n_kv_heads = args.k != nullptr ? args.layout.n_kv_heads : 0,
      .head_dim = args.layout.head_dim,
      .value_dim = args.layout.value_dim(),
      .norms_values = args.norms_values ? 1u : 0u,
      .rope_begin = args.rope_begin(),
      .rope_dim = args.rope_dim,
      .epsilon = args.epsilon,
      .style = args.style};
}

AttentionPlanInput CudaAttention::plan_input(const AttentionArgs& args) const {
  return {.tables = cuda_.step().block_tables(args.layout.group),
          .scratch = reinterpret_cast<float*>(partials_.data()),
          .scratch_bytes = partials_.size_bytes(),
          .longest = cuda_.runner->longest(),
          .has_multi_row = cuda_.runner->has_multi_row(),
          .n_runs = cuda_.runner->n_runs(),
          .n_sms = cuda_.card.n_sms,
          .max_shared_bytes = cuda_.card.max_shared_bytes,
          .counters = cuda_.blocks.counters(),
          .n_counters = cuda_.blocks.n_counters()};
}

/// Records that attention writes its output, and returns where it stores the rows for the next
/// matmul, in the form `next`.
PreparedRows CudaAttention::prepare_output(const AttentionArgs& args, RowForm next) {
  const std::uint32_t width = args.n_heads * args.layout.value_dim();
  cuda_.prepared.overwrite(args.out, width, next);
  return cuda_.prepared.prepared_rows_at(width, next);
}

LaunchStatus CudaAttention::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  cuda_.prepared.overwrite(args.q);
  return cuda_.runner->launch_one(
      context, label(context, LaunchSite::KvAppend, Touches::TenantMemory),
      [&](const PlanContext& plan, const LaunchPermit& permit) {
        return plan_rope_kv_append(heads_params(args, permit), plan.n_rows);
      });
}

LaunchStatus CudaAttention::run(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(cuda_.limits, context, args);
  const std::uint32_t width = args.n_heads * args.layout.value_dim();
  // The results of latent attention are rows of a matrix per head.
  const bool is_one_row = args.n_heads <= device::kMaxMergedHeads && !args.layout.is_latent();
  AttentionPlanInput input = plan_input(args);
  input.prepared =
      prepare_output(args, is_one_row ? cuda_.prepared.expected_form(width) : RowForm::Floats);
  return cuda_.runner->launch_all(
      context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
      label(context, LaunchSite::AttentionMerge), [&](const LaunchPermit& permit) {
        input.sinks = open_or_null(permit, args.sinks);
        return plan_attention(cuda_.runner->plan_context(context), args, input);
      });
}

LaunchStatus CudaAttention::prepare_and_run(const LaunchContext& context, const HeadsArgs& heads,
                                            const AttentionArgs& args) {
  expect_within_limits(cuda_.limits, context, args);
  AttentionPlanInput input = plan_input(args);
  if (!is_one_launch(cuda_.runner->plan_context(context), args, input)) {
    const LaunchStatus prepared = prepare_heads(context, heads);
    return prepared.none_live() ? prepared : LaunchStatus{prepared.live & run(context, args).live};
  }
  cuda_.prepared.overwrite(heads.q);
  input.prepared = prepare_output(
      args, args.next != nullptr
                ? cuda_.prepared.form_for(*args.next)
                : cuda_.prepared.expected_form(args.n_heads * args.layout.value_dim()));
  return cuda_.runner->launch_one(
      context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
      [&](const PlanContext& plan, const LaunchPermit& permit) {
        input.sinks = open_or_null(permit, args.sinks);
        return plan_decode_attention(plan, heads_params(heads, permit), args, input);
      });
}

}  // namespace leasehold::cuda
