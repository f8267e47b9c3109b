#include "kernels/cuda/cuda_resources.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/cuda/plan/int8_plan.hpp"
#include "kernels/cuda/plan/mma_probe.hpp"

namespace leasehold::cuda {
namespace {

Result<std::uint32_t> attribute(const Context& context, CUdevice_attribute which) {
  int value = 0;
  TRY(check(context.driver(),
            context.driver().cuDeviceGetAttribute(&value, which, context.device()),
            "reading the card's properties"));
  return static_cast<std::uint32_t>(value);
}

Result<bool> probe_wgmma(const Context& context, Launcher& launcher,
                         const device::KernelGate& gate) {
  const MmaProbeInput input = make_mma_probe_input();
  const std::size_t a_bytes = input.a.size() * sizeof(std::uint16_t);
  const std::size_t b_bytes = input.b.size() * sizeof(std::uint16_t);
  std::array<std::uint32_t, 2> results{};
  const DeviceBuffer on_card =
      TRY(DeviceBuffer::allocate(context, a_bytes + b_bytes + sizeof results));
  const PinnedBuffer here = TRY(PinnedBuffer::allocate(context, on_card.size_bytes()));
  std::memcpy(here.data(), input.a.data(), a_bytes);
  std::memcpy(here.data() + a_bytes, input.b.data(), b_bytes);
  std::memset(here.data() + a_bytes + b_bytes, 0, sizeof results);
  std::byte* const device_results = on_card.data() + a_bytes + b_bytes;
  KernelLaunch launch =
      plan_mma_probe({.gate = gate,
                      .a = reinterpret_cast<const std::uint16_t*>(on_card.data()),
                      .b = reinterpret_cast<const std::uint16_t*>(on_card.data() + a_bytes),
                      .results = reinterpret_cast<std::uint32_t*>(device_results),
                      .steps = input.steps},
                     input.n_products);
  launcher.enqueue_internal("probing wgmma", [&] {
    const CUresult copied = launcher.copy_to_device(on_card.data(), here.data(), here.size_bytes());
    return copied != CUDA_SUCCESS ? copied : launcher.enqueue(launch);
  });
  launcher.enqueue_internal("reading the wgmma probe", [&] {
    return launcher.copy_to_host(here.data(), device_results, sizeof results);
  });
  launcher.wait_all();
  if (launcher.fault()) return std::unexpected(*launcher.fault());
  std::memcpy(results.data(), here.data(), sizeof results);
  return wgmma_adds_as_mma(input, results);
}

/// Whether LEASEHOLD_CUDA_EARLY allows kernels to start early.
bool environment_allows_early() {
  const char* const text = std::getenv("LEASEHOLD_CUDA_EARLY");
  return text == nullptr || std::string_view(text) != "0";
}

/// Reads the card's properties. Launches a kernel that probes wgmma if the card may have it.
Result<void> probe_device(const Context& context, CudaResources& cuda, bool may_start_early) {
  cuda.card.n_sms = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  cuda.card.max_shared_bytes =
      TRY(attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  const auto major = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  const auto minor = TRY(attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  cuda.name = fmt::format("cuda-sm{}{}", major, minor);
  // The code of wgmma and of early kernels runs on this architecture only.
  const bool is_sm90 = major == 9 && minor == 0;
  cuda.card.has_wgmma = is_sm90 && TRY(probe_wgmma(context, cuda.launcher(), cuda.runner->gate()));
  cuda.card.starts_early = is_sm90 && may_start_early && environment_allows_early() &&
                           cuda.launcher().library().waits_for_previous();
  return {};
}

}  // namespace

Result<PreparedArray> PreparedArray::create(Launcher& launcher, const BackendLimits& limits,
                                            RowArithmetic rows) {
  PreparedArray made;
  made.arithmetic_ = rows;
  made.max_rows_ = max_matmul_inputs(limits);
  made.max_width_ = limits.max_width;
  // Sized for tiles, because rounded rows are smaller.
  made.rows_ = TRY(launcher.zeroed_buffer(device::tile_halves(made.max_rows_, made.max_width_) *
                                          sizeof(std::uint16_t)));
  made.scales_ = TRY(launcher.zeroed_buffer(aligned(made.max_rows_ * sizeof(float))));
  made.beside_ = TRY(launcher.zeroed_buffer(
      aligned(device::int8_rows_bytes(device::kMaxGatedRows, made.max_width_))));
  return made;
}

RowForm PreparedArray::form_for(const WeightMatrix& weight) const {
  if (weight.layout == MatrixLayout::RowGroups)
    return block_shape(weight.type).elements == kMinInt8Block ? RowForm::Int8By32
                                                              : RowForm::Int8By256;
  const bool are_floats = weight.type == TensorType::F32 || arithmetic_ == RowArithmetic::Floats;
  return are_floats ? RowForm::Floats : RowForm::Halves;
}

RowForm PreparedArray::expected_form(std::uint32_t n_in) const {
  return n_in <= max_width_ && arithmetic_ == RowArithmetic::Halves ? RowForm::Halves
                                                                    : RowForm::Floats;
}

PreparedRows PreparedArray::prepared_rows_at(std::uint32_t n_in, RowForm form) const {
  if (form == RowForm::Floats) return {};
  if (form == RowForm::Halves)
    return {.tiles = {.halves = reinterpret_cast<std::uint16_t*>(rows_.data()),
                      .scales = reinterpret_cast<float*>(scales_.data()),
                      .n_in = n_in}};
  return {.rounded = device::int8_rows_at(rows_.data(), max_rows_, n_in,
                                          static_cast<std::uint32_t>(form))};
}

PreparedRows PreparedArray::rows_beside(std::uint32_t n_in, RowForm form) const {
  return {.rounded = device::int8_rows_at(beside_.data(), device::kMaxGatedRows, n_in,
                                          static_cast<std::uint32_t>(form))};
}

PreparedRows PreparedArray::held_rows() const {
  return is_beside_ ? rows_beside(n_in_, form_) : prepared_rows_at(n_in_, form_);
}

void PreparedArray::set(const float* array, std::uint32_t n_in, RowForm form) {
  array_ = form == RowForm::Floats ? nullptr : array;
  n_in_ = n_in;
  form_ = form;
  is_beside_ = false;
}

void PreparedArray::set_beside(const float* array, std::uint32_t n_in, RowForm form) {
  set(array, n_in, form);
  is_beside_ = true;
}

bool PreparedArray::holds(const float* array, std::uint32_t n_in, RowForm form) const {
  return array != nullptr && array_ == array && n_in_ == n_in && form_ == form;
}

void PreparedArray::overwrite(const float* array, std::uint32_t n_in, RowForm form) {
  if (array_ == array) array_ = nullptr;
  if (form != RowForm::Floats) set(array, n_in, form);
}

void PreparedArray::clear(Launcher& launcher) {
  reset();
  launcher.zero(rows_);
  launcher.zero(scales_);
  launcher.zero(beside_);
}

Result<BlockScratch> BlockScratch::create(Launcher& launcher, const DeviceProperties& card,
                                          const BackendLimits& limits) {
  BlockScratch made;
  // A split matmul counts by tiles, attention by rows, gated products by parts of a row.
  made.n_counters_ =
      std::max({counter_count(card), limits.max_rows, gate_counter_count(limits.max_width)});
  made.partials_ = TRY(launcher.zeroed_buffer(max_split_bytes(card)));
  made.counters_ = TRY(launcher.zeroed_buffer(
      aligned((made.n_counters_ + limits.max_logit_rows) * sizeof(std::uint32_t))));
  return made;
}

Result<std::unique_ptr<CudaResources>> CudaResources::create(const Context& context,
                                                             const BackendLimits& limits,
                                                             const ThreadGate& gate,
                                                             CudaOptions options) {
  auto made = std::make_unique<CudaResources>();
  made->limits = limits;
  made->rows = options.rows;
  const bool may_start_early = options.starts_early;
  made->runner = TRY(StepRunner::create(context, limits, gate, std::move(options)));
  TRY(probe_device(context, *made, may_start_early));
  made->prepared = TRY(PreparedArray::create(made->launcher(), limits, made->rows));
  made->blocks = TRY(BlockScratch::create(made->launcher(), made->card, limits));
  return made;
}

}  // namespace leasehold::cuda
