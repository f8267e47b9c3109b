/// The weights of a tile of dots by the type of their elements.
#pragma once

#include <type_traits>

#include "common/expects.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/f16.hpp"

namespace leasehold {

/// Types that dots multiply as they are stored; rows of other types are widened to F32 first.
constexpr bool is_dot_type(TensorType type) {
  return type == TensorType::F32 || type == TensorType::F16 || type == TensorType::BF16;
}

/// Calls `use(std::type_identity<Element>{})` with float, Half or Bfloat.
template <class Use>
void with_element_of(TensorType type, Use&& use) {
  expects(is_dot_type(type), "a dot multiplies floats or halves");
  if (type == TensorType::F32) return use(std::type_identity<float>{});
  if (type == TensorType::F16) return use(std::type_identity<Half>{});
  use(std::type_identity<Bfloat>{});
}

template <class Element>
const Element* weights_as(const DotTile& tile, std::uint32_t output) {
  return reinterpret_cast<const Element*>(tile.weights[output]);
}

}  // namespace leasehold
