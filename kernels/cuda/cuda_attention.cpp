#include "kernels/cuda/cuda_attention.hpp"

#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/plan/attention_plan.hpp"

namespace leasehold::cuda {
namespace {

/// The number of blocks of one query that an SM holds at once; shared memory limits it.
constexpr std::uint32_t kBlocksPerSm = 4;

}  // namespace

Result<CudaAttention> CudaAttention::create(CudaResources& cuda) {
  AttentionArgs largest{};
  largest.layout.head_dim = cuda.limits.head_dim;
  largest.n_heads = cuda.limits.n_heads;
  const std::size_t size_bytes =
      std::max(cuda.limits.attention_scratch_bytes,
               attention_scratch_bytes_per_row(largest, cuda.limits.max_context));
  return CudaAttention(cuda, TRY(cuda.launcher().zeroed_buffer(aligned(size_bytes))));
}

LaunchStatus CudaAttention::run(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(cuda_.limits, context, args);
  const std::uint32_t width = args.n_heads * args.layout.value_dim();
  // The results of latent attention are rows of a matrix per head.
  const bool is_one_row = args.n_heads <= device::kMaxMergedHeads && !args.layout.is_latent();
  const RowForm next = is_one_row ? cuda_.prepared.expected_form(width) : RowForm::Floats;
  cuda_.prepared.overwrite(args.out, width, next);
  const AttentionPlanInput input{.tables = cuda_.step().block_tables(args.layout.group),
                                 .scratch = reinterpret_cast<float*>(partials_.data()),
                                 .scratch_bytes = partials_.size_bytes(),
                                 .longest = cuda_.runner->longest(),
                                 .has_multi_row = cuda_.runner->has_multi_row(),
                                 .blocks_at_once = kBlocksPerSm * cuda_.card.n_sms,
                                 .tiles = cuda_.prepared.prepared_rows_at(width, next).tiles};
  return cuda_.runner->launch_all(
      context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
      label(context, LaunchSite::AttentionMerge), [&](const LaunchPermit& permit) {
        AttentionPlanInput opened = input;
        if (args.sinks) opened.sinks = permit.open(args.sinks);
        return plan_attention(cuda_.runner->plan_context(context), args, opened);
      });
}

}  // namespace leasehold::cuda
