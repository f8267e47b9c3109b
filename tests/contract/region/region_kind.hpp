/// One kind of memory that is passed by descriptor, for the contract of RegionMapper.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "ipc/region/region_mapper.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {

class RegionKind {
 public:
  virtual ~RegionKind() = default;
  virtual const RegionMapper& mapper() const = 0;
  /// Allocates memory of this kind, as its owner sends it.
  virtual UniqueFd make(std::size_t size_bytes) = 0;
  /// Copies between a buffer and the memory behind addresses of a mapping.
  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
};

/// Throws where this machine has no such memory.
std::unique_ptr<RegionKind> make_region_kind();

}  // namespace leasehold::testing
