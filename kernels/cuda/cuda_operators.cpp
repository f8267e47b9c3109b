/// The operators of CudaBackend. Each selects the plan, the label and the addresses.
#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/launch_plans.hpp"
#include "kernels/cuda/workspace.hpp"

namespace leasehold::cuda {
namespace {

const float* opened(const LaunchPermit& permit, Leased<const float> handle) {
  return handle ? permit.open(handle) : nullptr;
}

}  // namespace

/// A recorded step is planned for the largest step of its shape.
PlanContext CudaBackend::plan_context(const LaunchContext& context) const {
  const bool records = mode_ == Mode::Record;
  return {.gate = step_memory_.gate(launcher_->mirror()),
          .n_rows = records ? shape_.n_rows : static_cast<std::uint32_t>(context.rows.size()),
          .layer = context.layer};
}

// ----------------------------------------------------------------------------------- prepared rows

CudaBackend::RowForm CudaBackend::form_for(const WeightMatrix& weight) const {
  if (weight.layout == MatrixLayout::RowGroups)
    return block_shape(weight.type).elements == kInt8Block ? RowForm::Int8By32 : RowForm::Int8By256;
  const bool are_floats = weight.type == TensorType::F32 || options_.rows == RowArithmetic::Floats;
  return are_floats ? RowForm::Floats : RowForm::Halves;
}

CudaBackend::RowForm CudaBackend::usual_form(std::uint32_t n_in) const {
  const bool fits = n_in <= limits_.max_width;
  return fits && options_.rows == RowArithmetic::Halves ? RowForm::Halves : RowForm::Floats;
}

PreparedRows CudaBackend::room_for(std::uint32_t n_in, RowForm form) const {
  std::byte* const at = workspace_->prepared.data();
  switch (form) {
    case RowForm::Floats:
      return {};
    case RowForm::Halves:
      return {.tiles = {.halves = reinterpret_cast<std::uint16_t*>(at),
                        .scales = reinterpret_cast<float*>(workspace_->scales.data()),
                        .n_in = n_in}};
    case RowForm::Int8By32:
    case RowForm::Int8By256:
      break;
  }
  return {.rounded = device::int8_rows_at(at, max_matmul_inputs(limits_), n_in,
                                          static_cast<std::uint32_t>(form))};
}

void CudaBackend::set_prepared(const float* array, std::uint32_t n_in, RowForm form) {
  prepared_array_ = form == RowForm::Floats ? nullptr : array;
  prepared_n_in_ = n_in;
  prepared_form_ = form;
}

bool CudaBackend::are_prepared(const float* array, std::uint32_t n_in, RowForm form) const {
  return array != nullptr && prepared_array_ == array && prepared_n_in_ == n_in &&
         prepared_form_ == form;
}

void CudaBackend::invalidate_prepared(const float* array) {
  if (prepared_array_ == array) prepared_array_ = nullptr;
}

// --------------------------------------------------------------------------------------- operators

LaunchStatus CudaBackend::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.out);
  EmbeddingArgs here = args;
  here.tokens = step_memory_.tokens();
  return launch_one(
      context, label(context, LaunchSite::Embedding), [&](const LaunchPermit& permit) {
        return plan_embedding(plan_context(context), here, permit.open(args.table.data));
      });
}

LaunchStatus CudaBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args) {
  return rms_norm(context, args, args.n_vectors == 1 ? usual_form(args.width) : RowForm::Floats);
}

LaunchStatus CudaBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args,
                                   RowForm next) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.out);
  if (next != RowForm::Floats) set_prepared(args.out, args.width, next);
  return launch_one(context, label(context, args.site), [&](const LaunchPermit& permit) {
    return plan_rms_norm(plan_context(context), args, permit.open(args.weight),
                         room_for(args.width, next));
  });
}

LaunchStatus CudaBackend::rope(const LaunchContext& context, const RopeArgs& args) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.x);
  RopeArgs here = args;
  here.cos_sin = step_memory_.cos_sin();
  return launch_one(context, label(context, args.site),
                    [&](const LaunchPermit&) { return plan_rope(plan_context(context), here); });
}

LaunchStatus CudaBackend::kv_append(const LaunchContext& context, const KvAppendArgs& args) {
  expect_within_limits(limits_, context);
  const UnitLabel where = label(context, LaunchSite::KvAppend, Touches::TenantMemory);
  return launch_one(context, where, [&](const LaunchPermit&) {
    return plan_kv_append(plan_context(context), args, step_memory_.block_tables());
  });
}

LaunchStatus CudaBackend::prepare_heads(const LaunchContext& context, const HeadsArgs& args) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.q);
  const UnitLabel where = label(context, LaunchSite::KvAppend, Touches::TenantMemory);
  return launch_one(context, where, [&](const LaunchPermit& permit) {
    const PlanContext plan = plan_context(context);
    return plan_rope_kv_append(
        {.gate = plan.gate,
         .kv = device::KvAddressing::of(args.layout, plan.layer, step_memory_.block_tables()),
         .q = args.q,
         .k = args.k,
         .v = args.v,
         .q_norm = opened(permit, args.query_norm),
         .k_norm = opened(permit, args.key_norm),
         .cos_sin = step_memory_.cos_sin(),
         .n_heads = args.n_heads,
         .n_kv_heads = args.layout.n_kv_heads,
         .head_dim = args.layout.head_dim,
         .rope_dim = args.rope_dim,
         .epsilon = args.epsilon,
         .style = args.style},
        plan.n_rows);
  });
}

/// The number of attention blocks of one query that an SM holds at once; shared memory limits it.
constexpr std::uint32_t kAttentionBlocksPerSm = 4;

/// Pairs of launches: score launches reach tenant memory, merges do not.
LaunchStatus CudaBackend::attention(const LaunchContext& context, const AttentionArgs& args) {
  expect_within_limits(limits_, context, args);
  invalidate_prepared(args.out);
  const std::uint32_t width = args.n_heads * args.layout.head_dim;
  const RowForm next =
      args.n_heads <= device::kMaxMergedHeads ? usual_form(width) : RowForm::Floats;
  if (next != RowForm::Floats) set_prepared(args.out, width, next);
  const AttentionPlanInput input{
      .tables = step_memory_.block_tables(),
      .scratch = reinterpret_cast<float*>(workspace_->attention.data()),
      .scratch_bytes = workspace_->attention.size_bytes(),
      .longest = mode_ == Mode::Record ? shape_.longest : step_memory_.longest(),
      .has_multi_row = mode_ != Mode::Record && step_memory_.has_multi_row(),
      .blocks_at_once = kAttentionBlocksPerSm * device_properties_.n_sms,
      .tiles = room_for(width, next).tiles};
  return launch_all(context, label(context, LaunchSite::AttentionScores, Touches::TenantMemory),
                    label(context, LaunchSite::AttentionMerge), [&](const LaunchPermit&) {
                      return plan_attention(plan_context(context), args, input);
                    });
}

/// With experts, one row here is the rows of all items of a step's row, and no operator reads it as
/// prepared.
LaunchStatus CudaBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args) {
  return swiglu(context, args, usual_form(args.width));
}

LaunchStatus CudaBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args,
                                 RowForm next) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.gate);
  if (next != RowForm::Floats) set_prepared(args.gate, args.width, next);
  return launch_one(context, label(context, LaunchSite::SwiGlu), [&](const LaunchPermit&) {
    return plan_swiglu(plan_context(context), args, 1, room_for(args.width, next),
                       {.largest = reinterpret_cast<std::uint32_t*>(workspace_->partials.data()),
                        .counters = reinterpret_cast<std::uint32_t*>(workspace_->counters.data()),
                        .max_blocks = counter_count(device_properties_)});
  });
}

// ----------------------------------------------------------------------------------------- matmuls

LaunchStatus CudaBackend::run_matmuls(const LaunchContext& context, LaunchSite site,
                                      std::span<const PlannedMatmul> group) {
  const MatmulOperands& first = group.front().operands;
  for (const PlannedMatmul& one : group) invalidate_prepared(one.operands.out);
  const RowForm form = group.front().form;
  const PreparedRows rows = room_for(first.n_in, form);
  const bool are_ready = are_prepared(first.x, first.n_in, form);
  const MatmulScratch scratch{
      .tiles = rows.tiles,
      .rounded = rows.rounded,
      .rows_are_prepared = are_ready,
      .partials = reinterpret_cast<float*>(workspace_->partials.data()),
      .counters = reinterpret_cast<std::uint32_t*>(workspace_->counters.data())};
  // Prepared rows of a selection serve this launch only.
  if (!are_ready && form != RowForm::Floats)
    set_prepared(first.select == nullptr ? first.x : nullptr, first.n_in, form);
  return launch_all(context, label(context, site), label(context, site),
                    [&](const LaunchPermit& permit) {
                      std::vector<MatmulOperands> opened_group;
                      for (const PlannedMatmul& one : group) {
                        opened_group.push_back(one.operands);
                        opened_group.back().weights = permit.open(one.weight);
                        opened_group.back().bias = opened(permit, one.bias);
                      }
                      return plan_matmul(opened_group, scratch, device_properties_);
                    });
}

MatmulOperands CudaBackend::matmul_operands(const LaunchContext& context,
                                            const MatmulArgs& args) const {
  const bool is_selected = !args.select.empty();
  const PlanContext plan = plan_context(context);
  return {.gate = plan.gate,
          .type = args.weight.type,
          .layout = args.weight.layout,
          .is_exact = options_.rows == RowArithmetic::Floats,
          .n_out = args.weight.n_out,
          .n_in = args.weight.n_in,
          .x = args.x,
          .select = is_selected ? step_memory_.logit_rows() : nullptr,
          .out = args.out,
          .accumulate = args.accumulate,
          .n_results = !is_selected || mode_ == Mode::Record
                           ? plan.n_rows
                           : static_cast<std::uint32_t>(args.select.size()),
          .count = {.is_logit_rows = is_selected ? 1u : 0u, .per_row = 1}};
}

LaunchStatus CudaBackend::matmul(const LaunchContext& context, const MatmulArgs& args) {
  return project(context, {.matmuls = {&args, 1}});
}

LaunchStatus CudaBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  expect_within_limits(limits_, context, args);
  LaunchStatus status{context.gates->all()};
  RowForm next = RowForm::Floats;  // the form of the first matmul that needs a form at all
  for (std::size_t i = 0; i < args.matmuls.size() && next == RowForm::Floats; ++i)
    next = form_for(args.matmuls[i].weight);
  if (args.norm != nullptr) status.live &= rms_norm(context, *args.norm, next).live;
  if (args.swiglu != nullptr && !status.none_live())
    status.live &= swiglu(context, *args.swiglu, next).live;
  std::vector<MatmulOperands> left;
  for (const MatmulArgs& one : args.matmuls) left.push_back(matmul_operands(context, one));
  for (std::size_t first = 0; first < left.size() && !status.none_live();) {
    const std::size_t n = joined_matmuls(std::span(left).subspan(first));
    std::vector<PlannedMatmul> group;
    for (std::size_t i = first; i < first + n; ++i)
      group.push_back({left[i], args.matmuls[i].weight.data, args.matmuls[i].bias,
                       form_for(args.matmuls[i].weight)});
    status.live &= run_matmuls(context, args.matmuls[first].site, group).live;
    first += n;
  }
  const MatmulArgs& last = args.matmuls.back();
  const bool are_logits = last.site == LaunchSite::LmHead && !last.select.empty() &&
                          last.weight.n_out == limits_.n_vocab;
  if (are_logits && !status.none_live()) status.live &= find_top(context, last).live;
  return status;
}

LaunchStatus CudaBackend::find_top(const LaunchContext& context, const MatmulArgs& args) {
  has_top_ = true;
  return launch_one(context, label(context, args.site), [&](const LaunchPermit&) {
    const PlanContext plan = plan_context(context);
    const CandidateRows found = candidate_rows(workspace_->top.data(), limits_.max_logit_rows);
    const auto n_selected = static_cast<std::uint32_t>(args.select.size());
    const std::uint32_t n_rows =
        std::min(mode_ == Mode::Record ? plan.n_rows : n_selected, limits_.max_logit_rows);
    auto* const counters = reinterpret_cast<std::uint32_t*>(workspace_->counters.data());
    return plan_top_candidates(
        {.gate = plan.gate,
         .logits = args.out,
         .out = found.out,
         .has_nonfinite = found.has_nonfinite,
         .part_keys = reinterpret_cast<std::uint64_t*>(workspace_->part_keys.data()),
         .counters = counters + counter_count(device_properties_),
         .n_vocab = args.weight.n_out,
         .k = found.k},
        n_rows, logit_parts(n_rows, args.weight.n_out, device_properties_.n_sms));
  });
}

// ----------------------------------------------------------------------------------------- experts

LaunchStatus CudaBackend::expert_routing(const LaunchContext& context,
                                         const ExpertRoutingArgs& args) {
  expect_within_limits(limits_, context);
  return launch_one(context, label(context, LaunchSite::ExpertRouting), [&](const LaunchPermit&) {
    return plan_expert_routing(plan_context(context), args);
  });
}

LaunchStatus CudaBackend::expert_matmul(const LaunchContext& context,
                                        const ExpertMatmulArgs& args) {
  expect_within_limits(limits_, context, args);
  const PlanContext plan = plan_context(context);
  const auto n_rows = static_cast<std::uint32_t>(context.rows.size());
  const std::uint32_t per_row = n_rows == 0 ? 1 : args.n_items / n_rows;
  const MatmulOperands operands{.gate = plan.gate,
                                .type = args.weight.type,
                                .layout = args.weight.layout,
                                .is_exact = options_.rows == RowArithmetic::Floats,
                                .n_out = args.n_out(),
                                .n_in = args.weight.n_in,
                                .x = args.x,
                                .experts = {.chosen = args.chosen, .items_per_x = args.items_per_x},
                                .n_experts = args.n_experts,
                                .out = args.out,
                                .n_results = plan.n_rows * per_row,
                                .count = {.is_logit_rows = 0, .per_row = per_row}};
  const PlannedMatmul one{operands, args.weight.data, {}, form_for(args.weight)};
  return run_matmuls(context, args.site, {&one, 1});
}

LaunchStatus CudaBackend::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  expect_within_limits(limits_, context);
  invalidate_prepared(args.out);
  return launch_one(context, label(context, LaunchSite::ExpertSum), [&](const LaunchPermit&) {
    return plan_weighted_sum(plan_context(context), args);
  });
}

}  // namespace leasehold::cuda
