#include "tests/property/spill_rig.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/required.hpp"

namespace leasehold::testing {

SpillRig::SpillRig(std::uint32_t blocks, std::uint64_t block_size_bytes)
    : file_(::memfd_create("spill", MFD_CLOEXEC)),
      size_bytes_(blocks * (block_size_bytes + LeaseSeal::kSealBytes)),
      slot_size_bytes_(block_size_bytes + LeaseSeal::kSealBytes) {
  REQUIRE(::ftruncate(file_.get(), static_cast<off_t>(size_bytes_)) == 0);
  store_ = required(SpillStore::create(
      required(SpillFile::adopt(required(file_.duplicate()), size_bytes_)), block_size_bytes,
      /*staging_bytes=*/1));
}

void SpillRig::lend_to(Engine& engine) {
  engine.lend_spill(*store_, *this,
                    {.timeout = damages ? Duration(std::chrono::milliseconds(3))
                                        : Duration(std::chrono::hours(1)),
                     .pause = std::chrono::milliseconds(1),
                     .first_bytes_per_second = 1e15});
}

/// Jobs of one stream run in their order.
void SpillRig::run(std::size_t at) {
  SpillJob job = jobs_[at];
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(at));
  const bool has_answer = job.kind != SpillJob::Kind::End;
  SpillAnswer answer = store_->execute(std::move(job), clock_);
  if (has_answer) answers_.push_back(std::move(answer));
}

void SpillRig::work(SeededRandom& random) {
  if (damages && random.below(4) == 0) change(static_cast<std::uint32_t>(random.below(4)));
  if (damages && random.below(40) == 0) cut_off();
  if (damages && random.below(60) == 0) hung_for_ = 30;
  if (hung_for_ > 0 && --hung_for_ > 0) return;
  for (std::uint64_t runs = random.below(6); runs > 0 && !jobs_.empty(); --runs) {
    // The first job of a random stream.
    const SpillId stream = jobs_[random.below(jobs_.size())].block.stream;
    const auto first = std::ranges::find_if(
        jobs_, [stream](const SpillJob& job) { return job.block.stream == stream; });
    run(static_cast<std::size_t>(first - jobs_.begin()));
  }
}

void SpillRig::finish(Engine& engine) {
  for (int i = 0; i < 20; ++i) {
    run_all();
    REQUIRE(engine.step());
  }
  REQUIRE(jobs_.empty());
  REQUIRE(engine.scheduler().spill().tracker().open_spills() == 0);
  REQUIRE(engine.scheduler().spill().tracker().slots_taken() == 0);
  REQUIRE(engine.scheduler().spill().tracker().buffers_taken() == 0);
  REQUIRE(store_->is_staging_clear());
}

void SpillRig::change(std::uint32_t slot) {
  const off_t at = static_cast<off_t>(slot * slot_size_bytes_ + 5);
  unsigned char byte = 0;
  if (::pread(file_.get(), &byte, 1, at) != 1) return;
  byte ^= 0x40;
  REQUIRE(::pwrite(file_.get(), &byte, 1, at) == 1);
}

void SpillRig::cut_off() {
  REQUIRE(::ftruncate(file_.get(), static_cast<off_t>(slot_size_bytes_ / 2)) == 0);
  REQUIRE(::ftruncate(file_.get(), static_cast<off_t>(size_bytes_)) == 0);
}

}  // namespace leasehold::testing
