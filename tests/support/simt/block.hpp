/// The threads of one block as fibers, and where they meet.
///
/// Lifetime: one per thread of the host, for as long as that lives; fibers and their stacks serve
/// every block that it runs. Threads: its own only.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fiber.hpp"
#include "tests/support/simt/late_work.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/support/simt/waits.hpp"

namespace leasehold::simt {

constexpr unsigned kWarp = 32;
constexpr unsigned kWarpgroup = 4 * kWarp;
constexpr unsigned kMostThreads = 1024;

/// Visits 0 … count-1 once each. Seed 0: in ascending order.
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed);
  std::uint64_t at(std::uint64_t i) const { return ascending_ ? i : (first_ + i * step_) % count_; }

 private:
  bool ascending_;
  std::uint64_t count_;
  std::uint64_t first_ = 0;
  std::uint64_t step_ = 1;
};

struct BlockWork {
  const Kernel* kernel = nullptr;
  const void* params = nullptr;
  unsigned threads = 0;
  std::uint64_t order_seed = 0;
};

class Block {
 public:
  Block() { fibers_[kOutside].emplace(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() = default;

  /// This thread's.
  static Block& mine();

  /// Every thread to its end. What was wrong, if something was.
  std::optional<std::string> run(const BlockWork& work);

  // From within a kernel.
  void meet_block();
  void meet_warp(const Meeting& meeting, std::uint32_t mask, void* part);
  void meet_warpgroup(const Meeting& meeting, void* part);
  [[noreturn]] void fail(const std::string& what);
  unsigned running() const { return running_; }
  LateWork& late() { return late_; }

 private:
  static constexpr unsigned kMostWarps = kMostThreads / kWarp;
  static constexpr unsigned kOutside = kMostThreads;  ///< The place of whoever called `run`.

  /// One bit for each lane. A lane that is neither waits.
  struct Warp {
    std::uint32_t all = 0;
    std::uint32_t ready = 0;
    std::uint32_t ended = 0;
  };

  struct Wait {
    const char* at = "";
    std::uint32_t mask = 0;
  };

  /// Lanes on their way to meet; `members` counts from `first`.
  struct Gathering {
    Finish finish = nullptr;
    const char* name = nullptr;
    unsigned first = 0;
    std::uint32_t mask = 0;  ///< 0: the whole warpgroup.
    unsigned missing = 0;    ///< 0: free for another meeting.
    std::array<void*, kWarpgroup> members{};
  };

  void prepare(const BlockWork& work);
  void start_fiber(unsigned thread);
  void live();
  bool run_round();
  void switch_to(unsigned thread);
  void go_on();
  std::optional<unsigned> next_of_warp(unsigned after) const;
  void wait_at(const char* name, std::uint32_t mask);
  void release(const Gathering& gathering);
  Gathering& gathering_for(const Meeting& meeting, unsigned first, std::uint32_t mask);
  void arrive(Gathering& gathering, void* part);
  std::string stalled() const;

  BlockWork work_;
  unsigned warp_count_ = 0;
  std::array<Warp, kMostWarps> warps_{};
  std::array<Wait, kMostThreads> waits_{};
  /// The last is the caller's. Behind `started_` there are none yet.
  std::array<std::optional<testing::Fiber>, kMostThreads + 1> fibers_;
  unsigned started_ = 0;
  std::deque<Gathering> gatherings_;
  LateWork late_;
  unsigned running_ = kOutside;
  unsigned at_barrier_ = 0;
  unsigned ended_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace leasehold::simt
