#include "kernels/quant/dequantize.hpp"

#include <cstring>

#include "common/expects.hpp"
#include "kernels/quant/element.hpp"

namespace leasehold {

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  const BlockShape shape = block_shape(type);
  expects(n % shape.elements == 0, "a row is a whole number of blocks");
  if (type == TensorType::F32) {
    std::memcpy(out, source, n * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < n; i += shape.elements, source += shape.size_bytes)
    for (std::uint32_t e = 0; e < shape.elements; ++e) out[i + e] = block_element(type, source, e);
}

}  // namespace leasehold
