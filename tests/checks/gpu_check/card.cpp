#include "tests/checks/gpu_check/card.hpp"

#include <fmt/format.h>

#include <array>

#include "kernels/cuda/device/bench_params.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr std::uint32_t kFillBlocks = 1024;
constexpr std::uint32_t kFillThreads = 256;

}  // namespace

Result<std::unique_ptr<Card>> Card::open(int ordinal) {
  const cuda::Driver* driver = TRY(cuda::load_driver());
  auto context = std::make_unique<cuda::Context>(TRY(cuda::Context::retain(*driver, ordinal)));
  cuda::KernelLibrary library = TRY(cuda::KernelLibrary::load(*context));
  cuda::Stream stream = TRY(cuda::create_stream(*context));
  const std::array<device::GateMirror, 2> values{
      {{.live = ~std::uint64_t{0}, .engine_stopped = 0, .epoch = 1},
       {.live = 0, .engine_stopped = 1, .epoch = 2}}};
  cuda::DeviceBuffer mirrors = TRY(cuda::DeviceBuffer::allocate(*context, sizeof values));
  std::unique_ptr<Card> card(
      new Card(std::move(context), std::move(library), std::move(stream), std::move(mirrors)));
  TRY(card->wait(driver->cuMemcpyHtoDAsync(cuda::device_address(card->mirrors_.data()), &values,
                                           sizeof values, card->stream_.get()),
                 "writing gates"));
  return card;
}

Result<void> Card::wait(CUresult begun, std::string_view doing) {
  TRY(cuda::check(context_->driver(), begun, doing));
  return cuda::check(context_->driver(), context_->driver().cuStreamSynchronize(stream_.get()),
                     doing);
}

device::KernelGate Card::gate(bool is_stopped) const {
  const auto* mirrors = reinterpret_cast<const device::GateMirror*>(mirrors_.data());
  return {.mirror = mirrors + (is_stopped ? 1 : 0), .step = nullptr, .rows = nullptr};
}

Result<void> Card::begin(cuda::KernelLaunch launch) {
  const CUfunction function = TRY(library_.find(launch.kernel, launch.shared_bytes));
  void* params[] = {launch.params.data()};
  return cuda::check(
      context_->driver(),
      context_->driver().cuLaunchKernel(function, launch.grid.x, launch.grid.y, launch.grid.z,
                                        launch.block_threads, 1, 1, launch.shared_bytes,
                                        stream_.get(), params, nullptr),
      launch.kernel);
}

Result<void> Card::run(cuda::KernelLaunch launch) {
  TRY(begin(launch));
  return wait(CUDA_SUCCESS, launch.kernel);
}

Result<void> Card::run(const cuda::StepGraph& graph) {
  return wait(context_->driver().cuGraphLaunch(graph.exec(), stream_.get()), "running a graph");
}

Result<void> Card::copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, int times) {
  for (int i = 0; i + 1 < times; ++i) {
    TRY(cuda::check(context_->driver(),
                    context_->driver().cuMemcpyDtoDAsync(to, from, size_bytes, stream_.get()),
                    "copying"));
  }
  return wait(context_->driver().cuMemcpyDtoDAsync(to, from, size_bytes, stream_.get()), "copying");
}

Result<void> Card::clear(CUdeviceptr at, std::size_t size_bytes) {
  return wait(context_->driver().cuMemsetD8Async(at, 0, size_bytes, stream_.get()), "clearing");
}

Result<void> Card::fetch(std::span<std::byte> to, CUdeviceptr from) {
  return wait(context_->driver().cuMemcpyDtoHAsync(to.data(), from, to.size(), stream_.get()),
              "fetching");
}

Result<void> Card::store(CUdeviceptr to, std::span<const std::byte> from) {
  return wait(context_->driver().cuMemcpyHtoDAsync(to, from.data(), from.size(), stream_.get()),
              "storing");
}

Result<void> Card::fill(CUdeviceptr to, std::size_t size_bytes, const Filling& filling) {
  const device::FillParams params{.gate = gate(),
                                  .to = cuda::device_pointer<std::uint64_t>(to),
                                  .n_words = size_bytes / sizeof(std::uint64_t),
                                  .keep = filling.keep,
                                  .set = filling.set,
                                  .seed = filling.seed};
  return run({.kernel = "lh_fill",
              .grid = {.x = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                           kFillBlocks, params.n_words / kFillThreads + 1))},
              .block_threads = kFillThreads,
              .params = cuda::KernelParams(params)});
}

Result<void> Card::multiply(CUdeviceptr sums, std::uint32_t blocks, std::uint32_t rounds) {
  const device::MmaRateParams params{
      .gate = gate(), .sums = cuda::device_pointer<float>(sums), .rounds = rounds};
  return run({.kernel = "lh_mma_rate",
              .grid = {.x = blocks},
              .block_threads = 128,
              .shared_bytes = device::MmaRateParams::kColumns * 32,
              .params = cuda::KernelParams(params)});
}

Result<void> Card::poll_gate(CUdeviceptr seen, std::uint32_t n_polls) {
  const device::GatePollsParams params{.gate = gate(),
                                       .n_polled_open = cuda::device_pointer<std::uint32_t>(seen),
                                       .n_polls = n_polls};
  return run({.kernel = "lh_gate_polls",
              .grid = {},
              .block_threads = 1,
              .params = cuda::KernelParams(params)});
}

Result<int> Card::attribute(CUdevice_attribute which) const {
  int value = 0;
  TRY(cuda::check(context_->driver(),
                  context_->driver().cuDeviceGetAttribute(&value, which, context_->device()),
                  "reading the attributes of the card"));
  return value;
}

}  // namespace leasehold::gpu_check
