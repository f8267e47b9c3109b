/// Multiplies every element of a vector by the same factor.
#pragma once

#include <span>

namespace leasehold {

inline void scale_vector(std::span<float> x, float factor) {
  for (float& element : x) element *= factor;
}

}  // namespace leasehold
