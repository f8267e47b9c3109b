/// The memory of the simulated machine. Shared words lie where the real code puts them, but at each
/// access the scheduler may run another thread, and a store that is not seq_cst may stay in its
/// thread's store buffer, as on x86.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <ranges>
#include <utility>

#include "tests/support/fiber.hpp"

namespace leasehold::simulation {

using testing::Fiber;

/// Stores of one thread that no other thread sees yet, oldest first.
class StoreBuffer {
 public:
  using Shared = std::atomic<std::uint64_t>;

  void put(Shared& where, std::uint64_t value) { stores_.emplace_back(&where, value); }
  void drain_one() {
    stores_.front().first->store(stores_.front().second);
    stores_.pop_front();
  }
  void drain() {
    while (!stores_.empty()) drain_one();
  }
  bool empty() const { return stores_.empty(); }
  /// What this thread reads there itself: its newest store, if one is waiting.
  const std::uint64_t* newest(const Shared& where) const {
    for (const auto& store : stores_ | std::views::reverse) {
      if (store.first == &where) return &store.second;
    }
    return nullptr;
  }

  /// Of the running thread; null for code whose stores are all visible immediately.
  inline static thread_local StoreBuffer* current = nullptr;

 private:
  std::deque<std::pair<Shared*, std::uint64_t>> stores_;
};

/// An atomic of shared memory, accessed through the simulated machine. It adds no member to the
/// atomic that lies there, so a reference to one can be used as a reference to the other.
class SimulatedWord : public std::atomic<std::uint64_t> {
 public:
  std::uint64_t load(std::memory_order) const {
    Fiber::pause();
    const StoreBuffer* buffer = StoreBuffer::current;
    const std::uint64_t* own = buffer != nullptr ? buffer->newest(*this) : nullptr;
    return own != nullptr ? *own : std::atomic<std::uint64_t>::load();
  }
  void store(std::uint64_t value, std::memory_order order) {
    Fiber::pause();
    StoreBuffer* buffer = StoreBuffer::current;
    if (buffer != nullptr && order != std::memory_order_seq_cst) return buffer->put(*this, value);
    if (buffer != nullptr) buffer->drain();
    std::atomic<std::uint64_t>::store(value);
  }
  std::uint64_t fetch_add(std::uint64_t more, std::memory_order) {
    Fiber::pause();
    if (StoreBuffer::current != nullptr) StoreBuffer::current->drain();
    return std::atomic<std::uint64_t>::fetch_add(more);
  }
};

/// The memory that GateCore, ThreadGate and LeaseTable::store_words use here.
struct SimulatedMemory {
  template <class T>
  using Atomic = SimulatedWord;
  static constexpr auto seq_cst = std::memory_order_seq_cst;
  static constexpr auto acquire = std::memory_order_acquire;
  static constexpr auto release = std::memory_order_release;

  static SimulatedWord* word(std::atomic<std::uint64_t>* shared) {
    return static_cast<SimulatedWord*>(shared);
  }
  static const SimulatedWord* word(const std::atomic<std::uint64_t>* shared) {
    return static_cast<const SimulatedWord*>(shared);
  }
};

}  // namespace leasehold::simulation
