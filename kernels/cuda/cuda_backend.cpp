#include "kernels/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "kernels/cuda/device/attention_params.hpp"
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/plan/low_rank_plan.hpp"
#include "kernels/cuda/plan/recurrent_plan.hpp"

namespace leasehold::cuda {
namespace {

/// Rejects models that the kernels do not support.
Result<void> check_limits(const BackendLimits& limits, RowArithmetic rows) {
  if (limits.head_dim > device::kMaxHeadDim)
    return fail(
        Errc::DeviceUnsupported,
        fmt::format("the model's heads have {} elements, but the CUDA kernels support at most "
                    "{}; use --device cpu",
                    limits.head_dim, device::kMaxHeadDim));
  if (rows == RowArithmetic::Halves && limits.n_heads > device::kMaxMergedHeads)
    return fail(
        Errc::DeviceUnsupported,
        fmt::format("the model has {} heads, but the CUDA kernels support at most {} in f16; use "
                    "--arithmetic f32 or int8",
                    limits.n_heads, device::kMaxMergedHeads));
  return {};
}

/// Rejects models whose recurrence needs more shared memory than a block has on this card.
Result<void> check_shared_memory(const BackendLimits& limits, const DeviceProperties& card) {
  const std::uint32_t most = most_state_keys(card.max_shared_bytes);
  if (limits.state_key_dim <= most) return {};
  return fail(Errc::DeviceUnsupported,
              fmt::format("the keys of the model's recurrent state have {} elements, but this card "
                          "has shared memory for {}; use --device cpu",
                          limits.state_key_dim, most));
}

}  // namespace

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const Context& context,
                                                         const BackendLimits& limits,
                                                         const ThreadGate& gate,
                                                         CudaOptions options) {
  TRY(check_limits(limits, options.rows));
  std::unique_ptr<CudaResources> cuda =
      TRY(CudaResources::create(context, limits, gate, std::move(options)));
  TRY(check_shared_memory(limits, cuda->card));
  Launcher& launcher = cuda->launcher();
  Scratch scratch;
  scratch.memory = TRY(launcher.zeroed_buffer(aligned(limits.scratch_bytes)));
  scratch.fetched = TRY(PinnedBuffer::allocate(
      context, std::max({1u, limits.n_vocab, limits.max_width}) * sizeof(float)));
  CudaAttention attention = TRY(CudaAttention::create(*cuda));
  LargestLogits logits = TRY(LargestLogits::create(context, launcher, limits));
  CudaCopies copies = TRY(CudaCopies::create(context, *cuda->runner));
  launcher.wait_all();
  if (launcher.fault()) return std::unexpected(*launcher.fault());
  return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(cuda), std::move(scratch),
                                                      std::move(attention), std::move(logits),
                                                      std::move(copies)));
}

std::byte* CudaBackend::allocate_scratch(std::size_t size_bytes) {
  expects(scratch_.used + aligned(size_bytes) <= scratch_.memory.size_bytes(),
          "scratch requests stay within BackendLimits::scratch_bytes");
  std::byte* const at = scratch_.memory.data() + scratch_.used;
  scratch_.used += aligned(size_bytes);
  return at;
}

std::span<const float> CudaBackend::fetch(const float* at, std::size_t count) {
  expects(count * sizeof(float) <= scratch_.fetched.size_bytes(),
          "fetch reads at most a row of logits or of hidden states");
  auto* const to = reinterpret_cast<float*>(scratch_.fetched.data());
  Launcher& launcher = cuda_->launcher();
  launcher.enqueue_internal("fetching logits",
                            [&] { return launcher.copy_to_host(to, at, count * sizeof(float)); });
  launcher.wait_all();
  return {to, count};
}

/// Rows of dead sequences may have written to any buffer. Counters are zero between launches.
void CudaBackend::clear_workspace() {
  Launcher& launcher = cuda_->launcher();
  cuda_->prepared.clear(launcher);
  cuda_->blocks.clear(launcher);
  attention_.clear();
  logits_.clear(launcher);
  copies_.clear();
  launcher.wait_all();
}

std::size_t CudaBackend::prepare_steps(const GateSet& gates, const std::function<void()>& record) {
  return cuda_->runner->prepare(gates, [&] {
    cuda_->prepared.reset();
    record();
    logits_.set_found(false);
  });
}

void CudaBackend::begin_step(const StepInput& input) {
  cuda_->prepared.reset();
  logits_.begin(static_cast<std::uint32_t>(input.logit_rows.size()));
  if (cuda_->launcher().take_stopped()) cuda_->blocks.reset_counters(cuda_->launcher());
  cuda_->runner->begin(input);
}

LaunchStatus CudaBackend::embedding(const LaunchContext& context, const EmbeddingArgs& args) {
  cuda_->prepared.overwrite(args.out);
  EmbeddingArgs here = args;
  here.tokens = cuda_->step().tokens();
  return cuda_->runner->launch_one(context, label(context, LaunchSite::Embedding),
                                   [&](const PlanContext& plan, const LaunchPermit& permit) {
                                     return plan_embedding(plan, here,
                                                           permit.open(args.table.data));
                                   });
}

LaunchStatus CudaBackend::rms_norm(const LaunchContext& context, const RmsNormArgs& args,
                                   NormOutputs outputs) {
  cuda_->prepared.overwrite(args.out, args.width, outputs.next);
  return cuda_->runner->launch_one(
      context, label(context, args.site), [&](const PlanContext& plan, const LaunchPermit& permit) {
        return plan_rms_norm(
            plan, args,
            {.weight = permit.open(args.weight), .out_scale = open_or_null(permit, args.out_scale)},
            cuda_->prepared.prepared_rows_at(args.width, outputs.next), outputs.has_floats);
      });
}

LaunchStatus CudaBackend::low_rank(const LaunchContext& context, const LowRankArgs& args) {
  expect_within_limits(cuda_->limits, context, args);
  for (const LowRankProduct& product : args.products) cuda_->prepared.overwrite(product.out);
  const UnitLabel unit = label(context, args.products.front().site, Touches::TenantMemory);
  return cuda_->runner->launch_all(context, unit, unit, [&](const LaunchPermit&) {
    return plan_low_rank(cuda_->runner->plan_context(context), args, cuda_->step().adapters(),
                         cuda_->runner->has_multi_row());
  });
}

LaunchStatus CudaBackend::swiglu(const LaunchContext& context, const SwiGluArgs& args,
                                 RowForm next) {
  cuda_->prepared.overwrite(args.gate, args.width, next);
  return cuda_->runner->launch_one(
      context, label(context, LaunchSite::SwiGlu),
      [&](const PlanContext& plan, const LaunchPermit&) {
        return plan_swiglu(plan, args, cuda_->prepared.prepared_rows_at(args.width, next),
                           cuda_->blocks.row_parts());
      });
}

LaunchStatus CudaBackend::convolution(const LaunchContext& context, const ConvolutionArgs& args) {
  expect_within_limits(cuda_->limits, context, args);
  cuda_->prepared.overwrite(args.out);
  return cuda_->runner->launch_one(
      context, label(context, LaunchSite::Convolution, Touches::TenantMemory),
      [&](const PlanContext& plan, const LaunchPermit& permit) {
        return plan_convolution(plan, args, cuda_->step().state_tables(), permit.open(args.weight),
                                open_or_null(permit, args.bias));
      });
}

LaunchStatus CudaBackend::recurrence(const LaunchContext& context, const RecurrenceArgs& args) {
  expect_within_limits(cuda_->limits, context, args);
  cuda_->prepared.overwrite(args.x);
  cuda_->prepared.overwrite(args.out);
  // Each unit plans both launches. The pieces are checked in the first one only, and in none of a
  // step that replays a graph.
  std::optional<device::HeadPieces> pieces;
  return cuda_->runner->launch_all(context, label(context, LaunchSite::StateUpdate),
                                   label(context, LaunchSite::StateUpdate, Touches::TenantMemory),
                                   [&](const LaunchPermit& permit) {
                                     if (!pieces)
                                       pieces = head_pieces(args.pieces.first(args.n_heads));
                                     return plan_recurrence(
                                         cuda_->runner->plan_context(context), args,
                                         cuda_->step().state_tables(), *pieces,
                                         {.step_bias = permit.open(args.step_bias),
                                          .decay_rates = permit.open(args.decay_rates),
                                          .skip = open_or_null(permit, args.skip)});
                                   });
}

LaunchStatus CudaBackend::softcap(const LaunchContext& context, const SoftcapArgs& args) {
  cuda_->prepared.overwrite(args.x);
  return cuda_->runner->launch_one(context, label(context, LaunchSite::LmHead),
                                   [&](const PlanContext& plan, const LaunchPermit&) {
                                     return plan_softcap(
                                         plan, args, cuda_->runner->result_count(context, args));
                                   });
}

LaunchStatus CudaBackend::expert_routing(const LaunchContext& context,
                                         const ExpertRoutingArgs& args) {
  return cuda_->runner->launch_one(context, label(context, LaunchSite::ExpertRouting),
                                   [&](const PlanContext& plan, const LaunchPermit& permit) {
                                     return plan_expert_routing(plan, args,
                                                                open_vectors(permit, args));
                                   });
}

LaunchStatus CudaBackend::weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) {
  cuda_->prepared.overwrite(args.out);
  return cuda_->runner->launch_one(
      context, label(context, LaunchSite::ExpertSum),
      [&](const PlanContext& plan, const LaunchPermit&) { return plan_weighted_sum(plan, args); });
}

LaunchStatus CudaBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  expect_within_limits(cuda_->limits, context, args);
  const RowForm next = matmuls_.form_of(args);
  LaunchStatus status{context.gates->all()};
  const bool norms_rows =
      args.norm != nullptr && matmuls_.norms_rows(context, *args.norm, args.matmuls);
  if (args.norm != nullptr && !norms_rows)
    status.live &= rms_norm(context, *args.norm, {next, matmuls_.read_floats(args, next)}).live;
  if (args.swiglu != nullptr && !status.none_live())
    status.live &= swiglu(context, *args.swiglu, next).live;
  if (!status.none_live())
    status.live &= matmuls_.run(context, args.matmuls, norms_rows ? args.norm : nullptr).live;
  if (!status.none_live()) status &= cap_products(context, args);
  const MatmulArgs& last = args.matmuls.back();
  const bool are_logits = last.site == LaunchSite::LmHead && !last.select.empty() &&
                          last.weight.n_out == cuda_->limits.n_vocab;
  if (!are_logits || status.none_live()) return status;
  logits_.set_found(true);
  const auto plan_search = [&](const PlanContext& plan, const LaunchPermit&) {
    return logits_.plan(plan, last, cuda_->runner->result_count(context, last),
                        cuda_->blocks.logit_counters(), cuda_->card.n_sms);
  };
  status &= cuda_->runner->launch_one(context, label(context, last.site), plan_search);
  return status;
}

LaunchStatus CudaBackend::feed_forward(const LaunchContext& context, const FeedForwardArgs& args) {
  if (!matmuls_.gates_products(context, args)) return Backend::feed_forward(context, args);
  const ProjectionArgs wide{.norm = args.norm, .matmuls = {&args.gate, 1}};
  expect_within_limits(cuda_->limits, context, wide);
  LaunchStatus status{context.gates->all()};
  const MatmulArgs gate_and_up[] = {args.gate, args.up};
  const bool norms_rows =
      args.norm != nullptr && matmuls_.norms_rows(context, *args.norm, gate_and_up);
  if (args.norm != nullptr && !norms_rows)
    status &= rms_norm(context, *args.norm, {matmuls_.form_of(wide), false});
  if (!status.none_live())
    status &= matmuls_.run_gated(context, args, norms_rows ? args.norm : nullptr);
  if (!status.none_live()) status &= project(context, {.matmuls = {&args.down, 1}});
  return status;
}

}  // namespace leasehold::cuda
