/// A spill store for a rig, whose jobs run when the test says so: late, in any order between
/// streams, or on a damaged file.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "common/random.hpp"
#include "worker/engine/engine.hpp"
#include "worker/kv/spill_store.hpp"

namespace leasehold::testing {

class SpillRig final : public SpillQueue {
 public:
  /// `blocks`: slots of the file. Spilling is cheap.
  SpillRig(std::uint32_t blocks, std::uint64_t block_size_bytes);

  void lend_to(Engine& engine);

  /// Runs some of the waiting jobs. With `damages` it changes bytes at times, cuts the file off, or
  /// runs nothing for a while, as a disk that hangs.
  void work(SeededRandom& random);
  /// Runs all jobs, and checks that nothing is left in staging or in the tracker.
  void finish(Engine& engine);
  void run_all() {
    while (!jobs_.empty()) run(0);
  }
  bool is_staging_clear() const { return store_->is_staging_clear(); }

  /// Changes one byte of a slot.
  void change(std::uint32_t slot);
  void cut_off();

  void post(SpillJob job) override { jobs_.push_back(std::move(job)); }
  std::vector<SpillAnswer> take_answers() override { return std::exchange(answers_, {}); }

  bool damages = false;  ///< Set before `lend_to`.

 private:
  void run(std::size_t at);

  UniqueFd file_;
  std::uint64_t size_bytes_;
  std::uint64_t slot_size_bytes_;
  std::unique_ptr<SpillStore> store_;
  ManualClock clock_;
  int hung_for_ = 0;  // calls of `work` that run nothing
  std::deque<SpillJob> jobs_;
  std::vector<SpillAnswer> answers_;
};

}  // namespace leasehold::testing
