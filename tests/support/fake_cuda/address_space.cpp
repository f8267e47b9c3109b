#include "tests/support/fake_cuda/address_space.hpp"

#include <iterator>

namespace leasehold::fake_cuda {

std::size_t Ranges::size_at(std::uintptr_t at) const {
  const auto found = sizes_.find(at);
  return found == sizes_.end() ? 0 : found->second;
}

bool Ranges::overlaps(std::uintptr_t at, std::size_t size_bytes) const {
  const auto behind = sizes_.lower_bound(at + size_bytes);
  if (behind == sizes_.begin()) return false;
  const auto last = std::prev(behind);
  return last->first + last->second > at;
}

bool Ranges::contain(std::uintptr_t at, std::size_t size_bytes) const {
  const auto behind = sizes_.upper_bound(at);
  if (behind == sizes_.begin()) return false;
  const auto range = std::prev(behind);
  return at + size_bytes <= range->first + range->second;
}

bool Ranges::cover(std::uintptr_t at, std::size_t size_bytes) const {
  const std::uintptr_t end = at + size_bytes;
  auto next = sizes_.upper_bound(at);
  while (next != sizes_.begin()) {
    const auto range = std::prev(next);
    if (range->first > at || range->first + range->second <= at) break;
    at = range->first + range->second;
    if (at >= end) return true;
    next = sizes_.upper_bound(at);
  }
  return size_bytes == 0;
}

bool Ranges::are_exactly(std::uintptr_t at, std::size_t size_bytes) const {
  const std::uintptr_t end = at + size_bytes;
  while (at < end) {
    const std::size_t size = size_at(at);
    if (size == 0) return false;
    at += size;
  }
  return at == end;
}

std::vector<std::span<std::byte>> Ranges::all() const {
  std::vector<std::span<std::byte>> all;
  for (const auto& [at, size] : sizes_)
    all.emplace_back(static_cast<std::byte*>(pointer(at)), size);
  return all;
}

AddressSpace& AddressSpace::get() {
  static auto& space = *new AddressSpace;
  return space;
}

bool is_device_memory(CUdeviceptr at, std::size_t size_bytes) {
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  return space.mapped.cover(at, size_bytes) || space.allocated.contain(at, size_bytes) ||
         space.registered.contain(at, size_bytes);
}

std::vector<std::span<std::byte>> device_memory() {
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  std::vector<std::span<std::byte>> all;
  for (const Ranges* const ranges : {&space.mapped, &space.allocated, &space.registered}) {
    const auto some = ranges->all();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool is_pinned(const void* at, std::size_t size_bytes) {
  AddressSpace& space = AddressSpace::get();
  const std::scoped_lock lock(space.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return space.host.contain(address, size_bytes) || space.registered.contain(address, size_bytes);
}

}  // namespace leasehold::fake_cuda
