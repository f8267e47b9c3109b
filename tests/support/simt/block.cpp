#include "tests/support/simt/block.hpp"

#include <alloca.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tests/support/simt/cuda_builtins.hpp"

namespace leasehold::simt {
namespace {

constexpr const char* kBarrier = "__syncthreads";
constexpr const char* kAwait = "await_previous_kernel";
constexpr std::uint64_t kEarlySeed =
    2;  ///< A seed with this bit: asynchronous work is done at once.

std::uint64_t mix(std::uint64_t x) {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9E37'79B9'7F4A'7C15;
  x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EB;
  return x ^ x >> 31;
}

}  // namespace

Order::Order(std::uint64_t count, std::uint64_t seed)
    : ascending_(seed == 0), count_(std::max<std::uint64_t>(count, 1)) {
  if (ascending_) return;
  if (seed == kDescendingOrder) {
    first_ = step_ = count_ - 1;
    return;
  }
  first_ = mix(seed) % count_;
  // Below 2^32, so that no product overflows; coprime, so that each index occurs once.
  step_ = mix(seed + 1) % count_ + 1;
  while (std::gcd(step_, count_) != 1) ++step_;
}

Block& Block::mine() {
  thread_local Block block;
  return block;
}

std::optional<std::string> Block::run(const BlockWork& work) {
  prepare(work);
  while (ended_ < work.threads && !failure_) {
    if (!run_round() && !failure_ && !make_progress()) failure_ = stalled();
  }
  work.predecessor->end();
  if (!failure_) return barriers_.unawaited();
  // Fibers paused in a kernel cannot serve another block.
  while (started_ > 0) fibers_[--started_].reset();
  return std::exchange(failure_, std::nullopt);
}

void Block::prepare(const BlockWork& work) {
  work_ = work;
  at_barrier_ = 0;
  ended_ = 0;
  n_syncs_ = 0;
  std::fill_n(waits_.begin(), work.threads, Wait{});
  const bool early = (work.order_seed & kEarlySeed) != 0;
  async_work_.begin(work.threads, early);
  barriers_.begin(early);
  has_predecessor_ended_ = early || !work.kernel->is_early;
  if (!has_predecessor_ended_) work.predecessor->begin();
  has_awaited_.reset();
  for (PendingSync& pending_sync : pending_syncs_) pending_sync.missing = 0;
  while (started_ < work.threads) start_fiber(started_++);
  warp_count_ = (work.threads + kWarp - 1) / kWarp;
  for (unsigned i = 0; i < warp_count_; ++i) {
    const unsigned lanes = std::min(kWarp, work.threads - i * kWarp);
    const std::uint32_t all = lanes == kWarp ? 0xFFFF'FFFF : (1u << lanes) - 1;
    warps_[i] = {.all = all, .ready = all, .ended = 0};
  }
}

void Block::start_fiber(unsigned thread) {
  fibers_[thread].emplace([this, thread] {
    // Offsets the stacks, which start at the same page offset, so that they do not compete for
    // cache sets.
    *static_cast<volatile char*>(::alloca(1 + thread % 32 * 128)) = 0;
    live();
  });
}

/// Runs one kernel after another until the fiber is unwound.
void Block::live() {
  while (true) {
    work_.kernel->body(work_.params);
    end_thread();
    run_next();
  }
}

void Block::end_thread() {
  if (async_work_.has_unwaited_products(running_)) fail("ends without waiting for its wgmma");
  if (work_.kernel->is_early && !has_awaited_[running_])
    fail(fmt::format("ends without {}", kAwait));
  Warp& warp = warps_[running_ / kWarp];
  const std::uint32_t bit = 1u << running_ % kWarp;
  warp.ready &= ~bit;
  warp.ended |= bit;
  ++ended_;
}

/// Does asynchronous work when every thread waits. Returns false if none can end a wait.
bool Block::make_progress() {
  return land_a_copy() || end_predecessor();
}

/// Lands a copy for the first waiting thread, or for the last if the seed is odd.
bool Block::land_a_copy() {
  for (unsigned i = 0; i < work_.threads; ++i) {
    const unsigned thread = work_.order_seed % 2 == 0 ? i : work_.threads - 1 - i;
    const device::SharedBarrier* const at = waits_[thread].barrier;
    if (at == nullptr || !barriers_.is_landing(*at)) continue;
    if (barriers_.land(*at)) wake_waiters(*at);
    return true;
  }
  return false;
}

bool Block::end_predecessor() {
  if (has_predecessor_ended_) return false;
  bool any = false;
  for (unsigned i = 0; i < work_.threads; ++i) {
    if (waits_[i].at != kAwait) continue;
    any = true;
    wake(i);
  }
  if (any) work_.predecessor->end();
  has_predecessor_ended_ = any;
  return any;
}

/// Runs each warp until all its lanes wait. Returns false if no warp could run.
bool Block::run_round() {
  const Order order(warp_count_, work_.order_seed);
  bool any = false;
  for (unsigned i = 0; i < warp_count_ && !failure_; ++i) {
    const unsigned first = static_cast<unsigned>(order.at(i)) * kWarp;
    // The first lane also depends on the seed.
    const auto lane = next_of_warp(first + static_cast<unsigned>(work_.order_seed) % kWarp);
    if (!lane) continue;
    any = true;
    switch_to(*lane);
  }
  return any;
}

void Block::switch_to(unsigned thread) {
  const unsigned before = std::exchange(running_, thread);
  ::threadIdx.x = thread;
  fibers_[before]->enter(*fibers_[thread]);
}

/// Switches to the next runnable lane of this warp, or leaves the warp.
void Block::run_next() {
  switch_to(next_of_warp(running_).value_or(kOutside));
}

/// The nearest ready lane after `after`, with wrap-around; before it, if the seed is odd.
std::optional<unsigned> Block::next_of_warp(unsigned after) const {
  const std::uint32_t ready = warps_[after / kWarp].ready;
  if (ready == 0) return std::nullopt;
  const unsigned first = after / kWarp * kWarp;
  const int lane = static_cast<int>(after % kWarp);
  if (work_.order_seed % 2 != 0) {
    const int back = std::countl_zero(std::rotr(ready, lane));
    return first + static_cast<unsigned>(lane + 31 - back) % kWarp;
  }
  const int ahead = std::countr_zero(std::rotr(ready, lane));
  return first + static_cast<unsigned>(lane + ahead) % kWarp;
}

void Block::wait_at(const Wait& wait) {
  waits_[running_] = wait;
  warps_[running_ / kWarp].ready &= ~(1u << running_ % kWarp);
  run_next();
}

void Block::wake(unsigned thread) {
  waits_[thread] = {};
  warps_[thread / kWarp].ready |= 1u << thread % kWarp;
}

void Block::wake_waiters(const device::SharedBarrier& at) {
  for (unsigned i = 0; i < work_.threads; ++i) {
    if (waits_[i].barrier == &at) wake(i);
  }
}

void Block::init_barrier(device::SharedBarrier& at, std::uint32_t arrivals) {
  barriers_.init(at, user(), arrivals);
}

void Block::arrive_at_barrier(device::SharedBarrier& at, std::uint32_t expected_bytes) {
  if (barriers_.arrive(at, user(), expected_bytes)) wake_waiters(at);
}

void Block::wait_for_barrier(device::SharedBarrier& at, std::uint32_t parity) {
  while (!barriers_.try_wait(at, user(), parity))
    wait_at({.at = "barrier_wait", .mask = 0, .barrier = &at});
}

void Block::copy_bulk(device::SharedBarrier& at, const BulkCopy& copy) {
  if (barriers_.copy(at, user(), copy, !has_predecessor_ended_)) wake_waiters(at);
}

void Block::await_previous_kernel() {
  if (!has_predecessor_ended_) wait_at({.at = kAwait});
  has_awaited_.set(running_);
}

void Block::arrive_and_wait_block() {
  if (++at_barrier_ < work_.threads) return wait_at({.at = kBarrier});
  at_barrier_ = 0;
  ++n_syncs_;
  for (unsigned i = 0; i < warp_count_; ++i) warps_[i].ready = warps_[i].all;
}

void Block::arrive_and_wait_warp(const SyncPoint& sync_point, std::uint32_t mask, void* part) {
  const unsigned first = running_ / kWarp * kWarp;
  const unsigned lanes = std::min(kWarp, work_.threads - first);
  if ((mask >> running_ % kWarp & 1) == 0)
    fail(fmt::format("{} with mask {:#x}, which does not include the caller", sync_point.name,
                     mask));
  if (lanes < kWarp && mask >> lanes != 0)
    fail(fmt::format("{} with mask {:#x} in a warp of {} lanes", sync_point.name, mask, lanes));
  arrive(pending_sync_for(sync_point, first, mask), part);
}

void Block::arrive_and_wait_warpgroup(const SyncPoint& sync_point, void* part) {
  const unsigned first = running_ / kWarpgroup * kWarpgroup;
  if (first + kWarpgroup > work_.threads)
    fail(fmt::format("{} in an incomplete warpgroup", sync_point.name));
  arrive(pending_sync_for(sync_point, first, 0), part);  // no warp's mask is 0
}

Block::PendingSync& Block::pending_sync_for(const SyncPoint& sync_point, unsigned first,
                                            std::uint32_t mask) {
  PendingSync* unused = nullptr;
  for (PendingSync& pending_sync : pending_syncs_) {
    if (pending_sync.missing == 0) {
      unused = &pending_sync;
    } else if (pending_sync.first == first && pending_sync.mask == mask &&
               pending_sync.finish == sync_point.finish) {
      return pending_sync;
    }
  }
  if (unused == nullptr) unused = &pending_syncs_.emplace_back();
  unused->finish = sync_point.finish;
  unused->name = sync_point.name;
  unused->first = first;
  unused->mask = mask;
  unused->missing = mask == 0 ? kWarpgroup : static_cast<unsigned>(std::popcount(mask));
  std::fill_n(unused->members.begin(), mask == 0 ? kWarpgroup : kWarp, nullptr);
  return *unused;
}

void Block::arrive(PendingSync& pending_sync, void* part) {
  const unsigned place = running_ - pending_sync.first;
  pending_sync.members[place] = part;
  if (--pending_sync.missing > 0)
    return wait_at({.at = pending_sync.name, .mask = pending_sync.mask});
  const std::size_t members = pending_sync.mask == 0 ? kWarpgroup : kWarp;
  if (pending_sync.finish != nullptr)
    pending_sync.finish(std::span(pending_sync.members).first(members));
  release(pending_sync);
}

void Block::release(const PendingSync& pending_sync) {
  const unsigned warp = pending_sync.first / kWarp;
  if (pending_sync.mask != 0) {
    warps_[warp].ready |= pending_sync.mask;
  } else {
    for (unsigned i = 0; i < kWarpgroup / kWarp; ++i) warps_[warp + i].ready = warps_[warp + i].all;
  }
}

void Block::fail(const std::string& what) {
  failure_ = fmt::format("thread {}: {}", running_, what);
  while (true) switch_to(kOutside);  // never resumed, only unwound
}

std::string Block::stalled() const {
  std::string text = fmt::format("threads wait for others that never arrive: {} of {} have ended",
                                 ended_, work_.threads);
  const Wait* before = nullptr;
  for (unsigned i = 0; i < work_.threads; ++i) {
    if ((warps_[i / kWarp].ended >> i % kWarp & 1) != 0) continue;
    const Wait& wait = waits_[i];
    if (before != nullptr && *before == wait) continue;
    before = &wait;
    text += fmt::format(", thread {} waits at {}", i, wait.at);
    if (wait.mask != 0) text += fmt::format(" with mask {:#x}", wait.mask);
    if (wait.barrier != nullptr) text += fmt::format(": {}", barriers_.missing(*wait.barrier));
  }
  return text;
}

}  // namespace leasehold::simt
