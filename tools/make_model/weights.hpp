/// Seeded weights and their packing into blocks. Pure. The same arguments give the same bytes on
/// every machine, because only integer and correctly rounded float operations are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/make_model/tensor_plan.hpp"

namespace leasehold::make_model {

/// Fills `out` with the weights of a tensor from element `first`, which is even.
/// `stream` is the seed of this tensor.
void fill_weights(const PlannedTensor& tensor, std::uint64_t stream, std::uint64_t first,
                  std::span<float> out);

/// Packs whole blocks. `out` has the size of exactly `weights.size()` elements of `type`.
/// Source: the block layouts of the GGUF format.
void pack_weights(TensorType type, std::span<const float> weights, std::span<std::byte> out);

}  // namespace leasehold::make_model
