#include "kernels/model/step_buffers.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kBufferAlignment = 256;

}  // namespace

std::size_t step_buffer_bytes(const ModelConfig& config, const StepLimits& limits) {
  std::size_t bytes = 0;
  StepBuffers().each(config, limits, [&](const auto* pointer, std::size_t elements) {
    bytes += elements * sizeof *pointer + kBufferAlignment;
  });
  return bytes;
}

}  // namespace leasehold
