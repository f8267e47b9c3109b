#include "tests/simulation/card.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <unordered_map>

#include "common/expects.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint64_t kOtherProgramBytes = 1ull << 20;  // half an extent

/// Descriptors are reused by later schedules: making one is slow.
struct Descriptors {
  std::vector<UniqueFd> by_number;
  std::unordered_map<ino_t, std::size_t> numbers;
};

Descriptors& descriptors() {
  thread_local Descriptors all;
  return all;
}

ino_t inode_of(const UniqueFd& fd) {
  struct stat found{};
  const int rc = ::fstat(fd.get(), &found);
  ensures(rc == 0, "a descriptor can be queried");
  return found.st_ino;
}

}  // namespace

std::optional<std::size_t> Card::allocate(std::uint64_t size_bytes, const Process& agent) {
  if (free_bytes() < size_bytes) return std::nullopt;
  memories_.push_back({.size_bytes = size_bytes, .agent = &agent});
  return memories_.size() - 1;
}

std::uint64_t Card::free_bytes() const {
  std::uint64_t used = others_bytes_;
  for (const Memory& memory : memories_) used += memory.exists() ? memory.size_bytes : 0;
  return used < total_bytes_ ? total_bytes_ - used : 0;
}

UniqueFd Card::descriptor(std::size_t memory) const {
  Descriptors& all = descriptors();
  while (all.by_number.size() <= memory) {
    UniqueFd fd(::memfd_create("card", MFD_CLOEXEC));
    all.numbers[inode_of(fd)] = all.by_number.size();
    all.by_number.push_back(std::move(fd));
  }
  return all.by_number[memory].duplicate().value();
}

std::size_t Card::memory_of(const UniqueFd& descriptor) {
  return descriptors().numbers.at(inode_of(descriptor));
}

void Card::importer_exited(std::size_t number) {
  Memory& memory = memories_.at(number);
  --memory.imports;
  if (machine_->one_in(3)) return;  // finished before any process can query it
  ++memory.exiting;
  memory.kept = memory.kept || machine_->one_in(8);
}

void Card::agent_died(const Process& agent) {
  ++agents_lost_;
  for (Memory& memory : memories_) {
    if (memory.agent == &agent) memory.agent = nullptr;
  }
}

bool Card::finish_teardown() {
  for (Memory& memory : memories_) {
    if (memory.exiting == 0 || memory.kept) continue;
    --memory.exiting;
    free_figure_unreliable_ = free_figure_unreliable_ || memory.abandoned;
    return true;
  }
  return false;
}

bool Card::disturb() {
  if (!noisy_) return false;
  if (others_bytes_ > 0 && machine_->one_in(2)) {
    others_bytes_ -= kOtherProgramBytes;
    free_figure_unreliable_ = true;
  } else if (others_bytes_ < 4 * kOtherProgramBytes) {
    others_bytes_ += kOtherProgramBytes;
  }
  return true;
}

}  // namespace leasehold::simulation
