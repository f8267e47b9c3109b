#include "kernels/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include "kernels/cuda/device/rope_params.hpp"

namespace leasehold::cuda {
namespace {

/// Rejects models that the kernels do not support.
Result<void> check_limits(const BackendLimits& limits) {
  if (limits.head_dim <= device::kMaxHeadDim) return {};
  return fail(
      Errc::DeviceUnsupported,
      fmt::format("the model's heads have {} elements, but the CUDA kernels support at most "
                  "{}; use --device cpu",
                  limits.head_dim, device::kMaxHeadDim));
}

}  // namespace

Result<BlockScratch> BlockScratch::create(Launcher& launcher, const DeviceProperties& card,
                                          std::uint32_t max_logit_rows) {
  BlockScratch made(counter_count(card));
  made.partials_ = TRY(launcher.zeroed_buffer(max_split_bytes(card)));
  made.counters_ = TRY(
      launcher.zeroed_buffer(aligned((made.n_counters_ + max_logit_rows) * sizeof(std::uint32_t))));
  return made;
}

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const Context& context,
                                                         const BackendLimits& limits,
                                                         const ThreadGate& gate,
                                                         CudaOptions options) {
  TRY(check_limits(limits));
  const RowArithmetic rows = options.rows;
  std::unique_ptr<StepRunner> runner =
      TRY(StepRunner::create(context, limits, gate, std::move(options)));
  Launcher& launcher = runner->launcher();
  ProbedDevice device = TRY(probe_device(context, launcher, runner->gate()));
  PreparedArray prepared = TRY(PreparedArray::create(launcher, limits, rows));
  BlockScratch blocks =
      TRY(BlockScratch::create(launcher, device.properties, limits.max_logit_rows));
  std::unique_ptr<CudaResources> cuda(new CudaResources{.limits = limits,
                                                        .rows = rows,
                                                        .card = device.properties,
                                                        .runner = std::move(runner),
                                                        .prepared = std::move(prepared),
                                                        .blocks = std::move(blocks)});
  Scratch scratch{.memory = TRY(launcher.zeroed_buffer(aligned(limits.scratch_bytes))),
                  .fetched = TRY(PinnedBuffer::allocate(
                      context, std::max(1u, limits.n_vocab) * sizeof(float)))};
  CudaAttention attention = TRY(CudaAttention::create(*cuda));
  LargestLogits logits = TRY(LargestLogits::create(context, launcher, limits));
  CudaCopies copies = TRY(CudaCopies::create(context, *cuda->runner));
  launcher.wait_all();
  if (launcher.fault()) return std::unexpected(*launcher.fault());
  return std::unique_ptr<CudaBackend>(new CudaBackend(std::move(device.name), std::move(cuda),
                                                      std::move(scratch), std::move(attention),
                                                      std::move(logits), std::move(copies)));
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
          "fetch reads at most one row of logits");
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

LaunchStatus CudaBackend::project(const LaunchContext& context, const ProjectionArgs& args) {
  LaunchStatus status = matmuls_.project(context, args, rows_);
  const MatmulArgs& last = args.matmuls.back();
  const bool are_logits = last.site == LaunchSite::LmHead && !last.select.empty() &&
                          last.weight.n_out == cuda_->limits.n_vocab;
  if (!are_logits || status.none_live()) return status;
  logits_.set_found(true);
  status.live &=
      cuda_->runner
          ->launch_one(context, label(context, last.site),
                       [&](const PlanContext& plan, const LaunchPermit&) {
                         return logits_.plan(plan, last, cuda_->runner->result_count(context, last),
                                             cuda_->blocks.logit_counters(), cuda_->card.n_sms);
                       })
          .live;
  return status;
}

}  // namespace leasehold::cuda
