#include "tests/support/fake_cuda/unfinished_writes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/support/fake_cuda/address_space.hpp"

namespace leasehold::fake_cuda {
namespace {

constexpr std::size_t kWord = 4;
constexpr std::size_t kChunk = 4096;  // compared at once

/// Adds the words of one chunk that differ; neighbours become one entry.
void add_changes(std::span<std::byte> memory, const std::byte* before,
                 std::vector<simt::UnfinishedMemory>& changes) {
  const auto differs = [&](std::size_t i) {
    const std::size_t size = std::min(kWord, memory.size() - i);
    return std::memcmp(memory.data() + i, before + i, size) != 0;
  };
  for (std::size_t i = 0; i < memory.size();) {
    std::size_t end = i;
    while (end < memory.size() && differs(end)) end += kWord;
    if (end > i) changes.push_back({.memory = memory.subspan(i, std::min(end, memory.size()) - i)});
    i = end + kWord;
  }
}

}  // namespace

UnfinishedWrites& UnfinishedWrites::get() {
  static auto& writes = *new UnfinishedWrites;
  return writes;
}

void UnfinishedWrites::finish_all() {
  ranges_.clear();
  if (!enabled_) return;
  for (const std::span<std::byte> memory : device_memory())
    ranges_.push_back({.memory = memory, .finished = {memory.begin(), memory.end()}});
}

void UnfinishedWrites::finish(const void* at, std::size_t size_bytes) {
  const auto* const begin = static_cast<const std::byte*>(at);
  for (Range& range : ranges_) {
    const std::byte* const first = std::max<const std::byte*>(begin, range.memory.data());
    const std::byte* const end =
        std::min<const std::byte*>(begin + size_bytes, range.memory.data() + range.memory.size());
    if (first < end) std::copy(first, end, range.finished.begin() + (first - range.memory.data()));
  }
}

std::vector<simt::UnfinishedMemory> UnfinishedWrites::changes() const {
  std::vector<simt::UnfinishedMemory> changes;
  if (!enabled_) return changes;
  for (const Range& range : ranges_) {
    for (std::size_t i = 0; i < range.memory.size(); i += kChunk) {
      const std::size_t size = std::min(kChunk, range.memory.size() - i);
      if (std::memcmp(range.memory.data() + i, range.finished.data() + i, size) != 0)
        add_changes(range.memory.subspan(i, size), range.finished.data() + i, changes);
    }
  }
  return changes;
}

}  // namespace leasehold::fake_cuda
