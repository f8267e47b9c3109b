#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <map>

#include "ipc/cuda/device_mapper.hpp"
#include "ipc/cuda/registered_mapper.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "worker/compute/compute.hpp"

namespace leasehold {
namespace {

using cuda::Context;
using cuda::GraphUse;

const std::map<std::string, GraphUse> kGraphs{
    {"none", GraphUse::None}, {"plain", GraphUse::Plain}, {"gated", GraphUse::Gated}};

/// Finds the GPU whose memory is lent, by UUID. Creates no context on other GPUs, because a context
/// takes memory, and this process may have no access to them.
Result<Context> find_cuda_device(const cuda::Driver& driver, const Attachment& lent) {
  int count = 0;
  TRY(cuda::check(driver, driver.cuDeviceGetCount(&count), "counting GPUs"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (TRY(cuda::uuid_of(driver, ordinal)) == lent.device_uuid)
      return Context::retain(driver, ordinal);
  }
  return fail(Errc::NoDevice,
              fmt::format("the broker lends memory of {} ({}), which is not among the {} GPUs of "
                          "this process; check CUDA_VISIBLE_DEVICES",
                          lent.device, lent.device_uuid, count));
}

/// Errors: BadRequest when `--device cuda:N` names another GPU than the lent one.
Result<void> check_device_ordinal(const WorkerOptions& options, const Context& context,
                                  const Attachment& lent) {
  if (options.device == "auto" || options.device == fmt::format("cuda:{}", context.ordinal()))
    return {};
  return fail(Errc::BadRequest,
              fmt::format("--device is {}, but the broker lends memory of cuda:{} ({}); start this "
                          "worker with --device auto",
                          options.device, context.ordinal(), lent.device_uuid));
}

void warn_graphs_unavailable(const Error& reason) {
  spdlog::warn("CUDA graphs unavailable; launching one by one reason=\"{}\"", reason.detail);
}

}  // namespace

Result<Compute> make_cuda_compute(const WorkerOptions& options, Arithmetic arithmetic,
                                  const Attachment& lent, const BackendLimits& limits,
                                  const GateDependencies& dependencies) {
  const cuda::Driver* driver = TRY(cuda::load_driver());
  auto context = std::make_shared<Context>(TRY(find_cuda_device(*driver, lent)));
  TRY(check_device_ordinal(options, *context, lent));
  const std::string card = TRY(context->name());
  std::unique_ptr<Backend> backend = TRY(cuda::CudaBackend::create(
      *context, limits, make_gates(dependencies, 0, 1).front(),
      {.rows = arithmetic == Arithmetic::F16 ? cuda::RowArithmetic::Halves
                                             : cuda::RowArithmetic::Floats,
       .graphs = kGraphs.at(options.graphs),
       .segment_layers = options.graph_segment_layers,
       .max_in_flight = options.max_in_flight,
       .on_graphs_unavailable = warn_graphs_unavailable}));
  std::string description = fmt::format("{} card=\"{}\"", backend->name(), card);
  const auto mapper = std::make_shared<cuda::DeviceMapper>(*context);
  return Compute{.context = context,
                 .mapper = mapper,
                 .first_mapper = nullptr,
                 .weights_mapper = mapper,
                 .swap_mapper = std::make_shared<cuda::RegisteredMapper>(*context),
                 .backend = std::move(backend),
                 .engine_cpus = {},
                 .weights_placer = {},
                 .description = std::move(description)};
}

}  // namespace leasehold
