#include "kernels/quant/dequantize.hpp"

#include <cstring>

#include "common/expects.hpp"
#include "kernels/quant/element.hpp"

namespace leasehold {
namespace {

template <float (*kElement)(const std::byte*, element::Halves, std::uint32_t)>
void each_block(TensorType type, const std::byte* source, float* out, std::size_t n) {
  const BlockShape shape = block_shape(type);
  for (std::size_t i = 0; i < n; i += shape.elements, source += shape.size_bytes) {
    const element::Halves halves = element::halves_of(type, source);
    for (std::uint32_t e = 0; e < shape.elements; ++e) out[i + e] = kElement(source, halves, e);
  }
}

}  // namespace

void dequantize_row(TensorType type, const std::byte* source, float* out, std::size_t n) {
  expects(n % block_shape(type).elements == 0, "a row is a whole number of blocks");
  switch (type) {
    case TensorType::F32:
      std::memcpy(out, source, n * sizeof(float));
      return;
    case TensorType::F16:
      for (std::size_t i = 0; i < n; ++i) out[i] = read_half(source + i * kHalfBytes);
      return;
    case TensorType::BF16:
      for (std::size_t i = 0; i < n; ++i) out[i] = read_bfloat(source + i * kHalfBytes);
      return;
    case TensorType::Q8_0:
      return each_block<element::q8_0>(type, source, out, n);
    case TensorType::Q4_0:
      return each_block<element::q4_0>(type, source, out, n);
    case TensorType::Q4_1:
      return each_block<element::q4_1>(type, source, out, n);
    case TensorType::Q5_0:
      return each_block<element::q5_0>(type, source, out, n);
    case TensorType::Q5_1:
      return each_block<element::q5_1>(type, source, out, n);
    case TensorType::Q2_K:
      return each_block<element::q2_k>(type, source, out, n);
    case TensorType::Q3_K:
      return each_block<element::q3_k>(type, source, out, n);
    case TensorType::Q4_K:
      return each_block<element::q4_k>(type, source, out, n);
    case TensorType::Q5_K:
      return each_block<element::q5_k>(type, source, out, n);
    case TensorType::Q6_K:
      return each_block<element::q6_k>(type, source, out, n);
    case TensorType::IQ4_NL:
      return each_block<element::iq4_nl>(type, source, out, n);
    case TensorType::IQ4_XS:
      return each_block<element::iq4_xs>(type, source, out, n);
    case TensorType::MXFP4:
      return each_block<element::mxfp4>(type, source, out, n);
  }
}

}  // namespace leasehold
