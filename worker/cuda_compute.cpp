#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "ipc/cuda/device_mapper.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "worker/compute.hpp"

namespace leasehold {
namespace {

using cuda::Context;

class CudaCompute final : public Compute {
 public:
  CudaCompute(std::unique_ptr<Context> context, std::unique_ptr<Backend> backend, std::string card)
      : context_(std::move(context)),
        mapper_(*context_),
        backend_(std::move(backend)),
        card_(std::move(card)) {}
  Backend& backend() override { return *backend_; }
  const RegionMapper& mapper() const override { return mapper_; }
  std::string description() const override {
    return fmt::format("{} card=\"{}\"", backend_->name(), card_);
  }

 private:
  std::unique_ptr<Context> context_;
  cuda::DeviceMapper mapper_;
  std::unique_ptr<Backend> backend_;
  std::string card_;
};

/// Finds the GPU whose memory is lent, by UUID. Creates no context on the others: a context takes
/// memory, and a GPU may be closed to this process.
Result<Context> find_cuda_device(const cuda::Driver& driver, const LentDevice& lent) {
  int count = 0;
  TRY(cuda::check(driver, driver.cuDeviceGetCount(&count), "counting GPUs"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (TRY(cuda::uuid_of(driver, ordinal)) == lent.uuid) return Context::retain(driver, ordinal);
  }
  return fail(Errc::NoDevice,
              fmt::format("the broker lends memory of {} ({}), which is not among the {} GPUs of "
                          "this process; check CUDA_VISIBLE_DEVICES",
                          lent.name, lent.uuid, count));
}

/// Errors: BadRequest when `--device cuda:N` names another GPU than the lent one.
Result<void> check_device_ordinal(const WorkerOptions& options, const Context& context,
                                  const LentDevice& lent) {
  if (options.device == "auto" || options.device == fmt::format("cuda:{}", context.ordinal()))
    return {};
  return fail(Errc::BadRequest,
              fmt::format("--device is {}, but the broker lends memory of cuda:{} ({}); start this "
                          "worker with --device auto",
                          options.device, context.ordinal(), lent.uuid));
}

constexpr cuda::GraphUse graph_use(GraphChoice choice) {
  switch (choice) {
    case GraphChoice::None:
      return cuda::GraphUse::None;
    case GraphChoice::Plain:
      return cuda::GraphUse::Plain;
    case GraphChoice::Gated:
      return cuda::GraphUse::Gated;
  }
  return cuda::GraphUse::None;
}

void warn_graphs_unavailable(const Error& reason) {
  spdlog::warn("CUDA graphs unavailable; launching one by one reason=\"{}\"", reason.detail);
}

}  // namespace

Result<std::unique_ptr<Compute>> make_cuda_compute(const WorkerOptions& options,
                                                   const LentDevice& lent,
                                                   const BackendLimits& limits,
                                                   const GateDependencies& dependencies) {
  const cuda::Driver* driver = TRY(cuda::load_driver());
  auto context = std::make_unique<Context>(TRY(find_cuda_device(*driver, lent)));
  TRY(check_device_ordinal(options, *context, lent));
  std::string card = TRY(context->name());
  auto backend =
      TRY(cuda::CudaBackend::create(*context, limits, make_gates(dependencies, 0, 1).front(),
                                    {.graphs = graph_use(options.graphs),
                                     .segment_layers = options.graph_segment_layers,
                                     .max_in_flight = options.max_in_flight,
                                     .on_graphs_unavailable = warn_graphs_unavailable}));
  return std::make_unique<CudaCompute>(std::move(context), std::move(backend), std::move(card));
}

}  // namespace leasehold
