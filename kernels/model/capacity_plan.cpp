#include "kernels/model/capacity_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/model/config.hpp"
#include "kernels/model/draft_layout.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/kv_type.hpp"
#include "kernels/model/record_size.hpp"
#include "kernels/model/step_buffers.hpp"
#include "kernels/model/weights_plan.hpp"

namespace leasehold {
namespace {

template <class Number>
Number ceil_div(Number number, Number by) {
  return (number + by - 1) / by;
}

/// Without the room that a block has for a larger piece of recurrent state.
std::uint64_t kv_bytes_per_token(const KvLayout& kv) {
  std::uint64_t bytes = 0;
  for (const KvLayer& layer : kv.layers())
    if (layer.group == 0) bytes += layer.size_bytes();
  return bytes / KvLayout::kBlockTokens;
}

/// Proposals in a step; a recurrent state has a row for each of them.
constexpr std::uint32_t kUsualProposals = 4;

Result<void> add_draft(const PlanRequest& request, CapacityPlan& plan) {
  if (request.draft_model.empty()) return {};
  const GgufFile file = TRY(GgufFile::open(request.draft_model));
  ModelConfig config = TRY(read_config(file));
  config.n_context = std::min({config.n_context, plan.context, request.draft_context});
  const KvType kv_type = *kv_type_from_name(request.kv_type);
  TRY(kv_layout_of(config, kv_type));
  const ChosenPlan weights =
      TRY(choose_weights_plan(file, config, std::nullopt, WeightsScope::Model));
  const DraftLayout layout = draft_layout(config, kv_type, request.max_batch_size);
  plan.draft_weights_bytes = weights.plan.size_bytes();
  plan.draft_texts_bytes = layout.size_bytes();
  plan.step_bytes += step_buffer_bytes(config, layout.step_limits(kUsualProposals));
  return {};
}

}  // namespace

/// Larger extents hold more blocks per byte, so the capacity may shrink when they grow. The loops
/// end because the extent size never falls, and with the largest extents each tenant needs one.
void choose_capacity(CapacityPlan& plan, std::uint32_t tenants, std::uint32_t max_extents) {
  const auto chosen = [&] {
    return choose_extent_size(plan.capacity_bytes, plan.block_bytes, max_extents);
  };
  plan.capacity_bytes = std::uint64_t{tenants} * plan.blocks_per_tenant * plan.block_bytes;
  plan.extent_bytes = 0;
  while (chosen() > plan.extent_bytes) {
    plan.extent_bytes = chosen();
    const std::uint64_t blocks_per_extent = plan.extent_bytes / plan.block_bytes;
    plan.extents_per_tenant = static_cast<std::uint32_t>(
        ceil_div<std::uint64_t>(plan.blocks_per_tenant, blocks_per_extent));
    plan.capacity_bytes = std::uint64_t{tenants} * plan.extents_per_tenant * plan.extent_bytes;
  }
  while (chosen() < plan.extent_bytes) plan.capacity_bytes += plan.extent_bytes;
}

Result<CapacityPlan> plan_capacity(const PlanRequest& request, std::uint64_t memory_bytes) {
  if (request.tenants > request.max_extents) {
    return fail(Errc::BadRequest,
                fmt::format("{} tenants need an extent each, and --max-extents is {}; use fewer "
                            "tenants{}",
                            request.tenants, request.max_extents,
                            request.max_extents < kMaxExtents
                                ? fmt::format(", or raise it; it is at most {}", kMaxExtents)
                                : "; --max-extents is at most that"));
  }
  const GgufFile file = TRY(GgufFile::open(request.model));
  ModelConfig config = TRY(read_config(file));
  if (request.context > config.n_context) {
    return fail(Errc::BadRequest, fmt::format("--context is {}, and the model has {} tokens",
                                              request.context, config.n_context));
  }
  if (request.context > 0) config.n_context = request.context;
  const KvLayout kv = TRY(kv_layout_of(config, *kv_type_from_name(request.kv_type)));
  const ChosenPlan weights =
      TRY(choose_weights_plan(file, config, std::nullopt, WeightsScope::Model));
  CapacityPlan plan{.context = config.n_context,
                    .skipped_layers = config.n_skipped_layers,
                    .weights_bytes = weights.plan.size_bytes(),
                    .kv_bytes_per_token = kv_bytes_per_token(kv),
                    .block_bytes = kv.block_size_bytes(),
                    .step_bytes = step_buffer_bytes(config, {}),
                    .memory_bytes = memory_bytes};
  const std::uint32_t state_blocks = state_layout(config, kv).blocks();
  plan.state_blocks_per_tenant = kStateCopies * state_blocks;
  const std::uint32_t blocks = ceil_div(plan.context, KvLayout::kBlockTokens);
  plan.window_blocks_per_tenant =
      kv.window().n_groups * std::min(blocks, kv.window().most_blocks(StepLimits{}.max_rows));
  const RecordShape record{.max_context = plan.context, .n_groups = kv.n_groups()};
  plan.blocks_per_tenant = blocks + plan.window_blocks_per_tenant +
                           record_block_count(record, plan.block_bytes, state_blocks) +
                           plan.state_blocks_per_tenant;
  TRY(add_draft(request, plan));
  choose_capacity(plan, request.tenants, request.max_extents);
  return plan;
}

}  // namespace leasehold
