#include "kernels/cuda/plan/low_rank_plan.hpp"

#include <algorithm>

namespace leasehold::cuda {

std::vector<KernelLaunch> plan_low_rank(const PlanContext& context, const LowRankArgs& args,
                                        device::DeviceAdapters adapters, bool shares_rows) {
  constexpr std::uint32_t kThreads = 128;
  device::LowRankParams params{.gate = context.gate,
                               .adapters = adapters,
                               .x = args.x,
                               .h = args.h,
                               .products = {},
                               .n_products = static_cast<std::uint32_t>(args.products.size()),
                               .n_in = args.n_in,
                               .max_rank = args.max_rank,
                               .rows_per_block = shares_rows ? device::kLowRankRows : 1};
  std::uint32_t widest = 0;
  for (std::uint32_t p = 0; p < params.n_products; ++p) {
    const LowRankProduct& product = args.products[p];
    params.products[p] = {product.out, product.n_out, product.slot};
    widest = std::max(widest, product.n_out);
  }
  const std::uint32_t row_blocks = blocks_for(context.n_rows, params.rows_per_block);
  return {
      {.kernel = "lh_low_rank_reduce",
       .grid = {blocks_for(args.max_rank, kThreads / kWarpThreads), row_blocks, params.n_products},
       .block_threads = kThreads,
       .params = KernelParams(params)},
      {.kernel = "lh_low_rank_expand",
       .grid = {blocks_for(widest, kThreads), row_blocks, params.n_products},
       .block_threads = kThreads,
       .params = KernelParams(params)}};
}

}  // namespace leasehold::cuda
