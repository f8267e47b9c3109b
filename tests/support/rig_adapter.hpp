/// An adapter of random matrices in leased memory.
#pragma once

#include <cstdint>
#include <memory>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "kernels/model/config.hpp"
#include "worker/model/adapter_matrices.hpp"

namespace leasehold::testing {

/// Changes every weight of a model whose layers are all dense, by F32 matrices. Equal seeds make
/// equal values.
struct RigAdapter {
  RigAdapter(const ModelConfig& config, std::uint64_t seed, std::uint32_t rank);

  std::size_t size_bytes = 0;
  MemoryObject memory;
  LeasedMapping mapping;
  std::shared_ptr<AdapterMatrices> matrices;
};

}  // namespace leasehold::testing
