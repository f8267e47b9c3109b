#include "tests/checks/gpu_check/card_placement.hpp"

#include "ipc/cuda/device_memory.hpp"

namespace leasehold::gpu_check {
namespace {

/// Allocates and maps memory. The driver keeps mapped memory allocated, so no handle is kept.
Result<cuda::DeviceMapping> map_new(const cuda::Context& context, std::size_t size_bytes) {
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(context, size_bytes));
  return cuda::DeviceMapping::map(memory, MapAccess::ReadWrite);
}

LeasedMapping leased(cuda::DeviceMapping mapping, std::size_t size_bytes) {
  auto owner = std::make_shared<cuda::DeviceMapping>(std::move(mapping));
  auto* const data = cuda::device_pointer<>(owner->address());
  return LeasedMapping(std::move(owner), {data, size_bytes}, MapAccess::ReadWrite);
}

constexpr std::uint64_t four_times(std::uint16_t half) {
  return half * std::uint64_t{0x0001'0001'0001'0001};
}

/// Returns a filling that gives f16 values of about ±2^-6, f32 values from 1 to 2, and blocks whose
/// f16 scales are about 2^-14.
Card::Filling filling_for(TensorType type, std::uint64_t seed) {
  switch (type) {
    case TensorType::F32:
      return {.keep = 0x007F'FFFF'007F'FFFF, .set = 0x3F80'0000'3F80'0000, .seed = seed};
    case TensorType::F16:
      return {.keep = four_times(0x83FF), .set = four_times(0x2400), .seed = seed};
    case TensorType::BF16:
      return {.keep = four_times(0x807F), .set = four_times(0x3C80), .seed = seed};
    default:
      return {.keep = four_times(0x03FF), .set = four_times(0x0400), .seed = seed};
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> CardPlacement::make_backend(const BackendLimits& limits,
                                                             const ThreadGate& gate) {
  auto made = TRY(cuda::CudaBackend::create(card_->context(), limits, gate, options_));
  backend_ = made.get();
  return made;
}

Result<LeasedMapping> CardPlacement::allocate(std::size_t size_bytes) {
  cuda::DeviceMapping mapping = TRY(map_new(card_->context(), size_bytes));
  TRY(card_->fill(mapping.address(), mapping.size_bytes(), filling_for(TensorType::F16, 1)));
  return leased(std::move(mapping), size_bytes);
}

Result<std::optional<LeasedMapping>> CardPlacement::make_weights(const WeightsLayout& layout) {
  if (weights_ == WeightsSource::File) return std::nullopt;
  cuda::DeviceMapping mapping = TRY(map_new(card_->context(), layout.size_bytes));
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  std::uint64_t seed = 0;
  for (const WeightTensor& slot : layout.weights) {
    const std::uint64_t whole_words = (slot.size_bytes + kWord - 1) / kWord * kWord;
    TRY(card_->fill(mapping.address() + slot.region_offset_bytes, whole_words,
                    filling_for(slot.type, ++seed << 40)));
  }
  return leased(std::move(mapping), layout.size_bytes);
}

}  // namespace leasehold::gpu_check
