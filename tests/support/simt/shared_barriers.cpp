#include "tests/support/simt/shared_barriers.hpp"

#include <fmt/format.h>

#include <cstring>

#include "tests/support/simt/sync_points.hpp"

namespace leasehold::simt {
namespace {

constexpr std::uint32_t kMaxCount = (1u << 20) - 1;  // PTX ISA, mbarrier: arrivals, and bytes
constexpr std::size_t kCopyUnit = 16;

/// What a barrier's memory holds, so that a write to it is noticed.
std::uint64_t mark_of(const device::SharedBarrier& at) {
  return reinterpret_cast<std::uintptr_t>(&at) ^ 0xBA44'1E4B'A441'E4BAu;
}

bool is_misaligned(const void* at, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(at) % to != 0;
}

}  // namespace

void SharedBarriers::begin(bool early) {
  early_ = early;
  barriers_.clear();
}

void SharedBarriers::init(device::SharedBarrier& at, BarrierUser user, std::uint32_t arrivals) {
  if (is_misaligned(&at, sizeof at)) fail_thread("a barrier needs an address that 8 divides");
  if (arrivals == 0 || arrivals > kMaxCount)
    fail_thread(fmt::format("a barrier of {} arrivals is not valid", arrivals));
  const Barrier fresh{
      .arrivals = arrivals, .missing = arrivals, .initialised_by = user, .flying = {}};
  if (!barriers_.emplace(&at, fresh).second) fail_thread("barrier_init of a barrier in use");
  at.state = mark_of(at);
}

SharedBarriers::Barrier& SharedBarriers::find(const device::SharedBarrier& at, BarrierUser user) {
  const auto found = barriers_.find(&at);
  if (found == barriers_.end()) fail_thread("a barrier is used without barrier_init");
  Barrier& barrier = found->second;
  if (at.state != mark_of(at)) fail_thread("a barrier's memory was overwritten");
  if (barrier.initialised_by.thread != user.thread &&
      barrier.initialised_by.n_syncs == user.n_syncs)
    fail_thread("a barrier is used without __syncthreads after its barrier_init");
  return barrier;
}

/// On a card such a phase would end before its copies, or never.
void SharedBarriers::check_bytes(const Barrier& barrier) {
  if (barrier.missing > 0 || barrier.flying_bytes <= barrier.missing_bytes) return;
  fail_thread(
      fmt::format("bulk copies of {} bytes more than the phase expects; call barrier_expect",
                  barrier.flying_bytes - barrier.missing_bytes));
}

/// The next phase begins when nothing is missing.
bool SharedBarriers::complete_if_due(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.missing_bytes != 0) return false;
  barrier.missing = barrier.arrivals;
  ++barrier.phase;
  return true;
}

bool SharedBarriers::arrive(device::SharedBarrier& at, BarrierUser user,
                            std::uint32_t expected_bytes) {
  Barrier& barrier = find(at, user);
  if (barrier.missing == 0)
    fail_thread(fmt::format("more than {} arrivals at a barrier in one phase", barrier.arrivals));
  barrier.missing_bytes += expected_bytes;
  if (barrier.missing_bytes > kMaxCount)
    fail_thread(fmt::format("a phase of {} bytes is too long", barrier.missing_bytes));
  --barrier.missing;
  check_bytes(barrier);
  return complete_if_due(barrier);
}

bool SharedBarriers::copy(device::SharedBarrier& at, BarrierUser user, const BulkCopy& copy,
                          bool from_unfinished) {
  if (is_misaligned(copy.to, kCopyUnit) || is_misaligned(copy.from, kCopyUnit) ||
      copy.size_bytes % kCopyUnit != 0 || copy.size_bytes == 0)
    fail_thread(
        fmt::format("bulk_copy of {} bytes: the size and both addresses must be multiples of 16",
                    copy.size_bytes));
  Barrier& barrier = find(at, user);
  barrier.n_with_copies = barrier.phase + 1;
  barrier.flying_bytes += copy.size_bytes;
  check_bytes(barrier);
  Flying flying{.copy = copy, .read = {}};
  if (early_) return store(barrier, flying);
  if (from_unfinished) {
    const auto* const from = static_cast<const std::byte*>(copy.from);
    flying.read.assign(from, from + copy.size_bytes);
  }
  barrier.flying.push_back(std::move(flying));
  return false;
}

bool SharedBarriers::store(Barrier& barrier, const Flying& flying) {
  const void* const from = flying.read.empty() ? flying.copy.from : flying.read.data();
  std::memcpy(flying.copy.to, from, flying.copy.size_bytes);
  barrier.flying_bytes -= flying.copy.size_bytes;
  barrier.missing_bytes -= flying.copy.size_bytes;
  return complete_if_due(barrier);
}

bool SharedBarriers::is_landing(const device::SharedBarrier& at) const {
  return !barriers_.at(&at).flying.empty();
}

bool SharedBarriers::land(const device::SharedBarrier& at) {
  Barrier& barrier = barriers_.at(&at);
  const Flying flying = std::move(barrier.flying.front());
  barrier.flying.pop_front();
  return store(barrier, flying);
}

bool SharedBarriers::try_wait(device::SharedBarrier& at, BarrierUser user, std::uint32_t parity) {
  if (parity > 1) fail_thread(fmt::format("barrier_wait for parity {}, not 0 or 1", parity));
  Barrier& barrier = find(at, user);
  if (barrier.phase % 2 == parity) return false;
  barrier.n_awaited = barrier.phase;
  return true;
}

std::string SharedBarriers::missing(const device::SharedBarrier& at) const {
  const Barrier& barrier = barriers_.at(&at);
  return fmt::format("phase {} lacks {} of {} arrivals and {} bytes", barrier.phase,
                     barrier.missing, barrier.arrivals, barrier.missing_bytes);
}

std::optional<std::string> SharedBarriers::unawaited() const {
  for (const auto& [at, barrier] : barriers_) {
    if (barrier.n_with_copies > barrier.n_awaited)
      return fmt::format("the block ends without barrier_wait for its bulk copies of phase {}",
                         barrier.n_with_copies - 1);
  }
  return std::nullopt;
}

}  // namespace leasehold::simt
