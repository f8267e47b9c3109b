// What the scheduler spills, when it gives up waiting for the disk, and what it measures.
#include <catch2/catch.hpp>
#include <deque>

#include "tests/unit/worker/schedule/swap_pair.hpp"

namespace leasehold::testing {
namespace {

using Kind = SpillEvent::Kind;

constexpr Duration kDiskTimeout = std::chrono::seconds(5);

/// Three requests in memory for two, with swap for one: the second victim needs the file.
struct SpillTriple : SwapPair {
  explicit SpillTriple(double first_bytes_per_second = 1e15, std::uint32_t swap_blocks = 3,
                       std::uint64_t block_size_bytes = 1024, std::uint32_t state_blocks = 0)
      : SwapPair(swap_blocks, block_size_bytes, /*max_tokens=*/60, state_blocks) {
    scheduler.spill().lend({.slots = 8 + 2 * state_blocks,
                            .buffers = 4,
                            .timeout = kDiskTimeout,
                            .first_bytes_per_second = first_bytes_per_second});
    grow(lease_id, 3 + kStateCopies * state_blocks);
    submit("youngest");
  }

  /// Refuses swap, too.
  void spill_step(TimePoint now = kNow) {
    deny_growth_requests();
    file(swap_tick(StepFault::None, now));
    for (const SpillJob& job : scheduler.spill().take_jobs()) jobs.push_back(job);
    for (SpillEvent& event : scheduler.spill().take_events()) spills.push_back(event);
  }
  bool has_spilled(Kind kind) const {
    return std::ranges::any_of(spills, [kind](const auto& each) { return each.kind == kind; });
  }

  /// The disk does what it was asked to, each job in `took`.
  void answer_jobs(Duration took = Duration(1)) {
    std::vector<SpillAnswer> answers;
    for (SpillJob& job : jobs) {
      Content& staged = content({kStagingExtent, job.buffer});
      if (job.kind == SpillJob::Kind::Write) file_contents[job.slot] = std::exchange(staged, {});
      if (job.kind == SpillJob::Kind::Read) staged = file_contents[job.slot];
      if (job.kind == SpillJob::Kind::Clear) staged = {};
      if (job.kind != SpillJob::Kind::End) answers.push_back({std::move(job), {}, took});
    }
    jobs.clear();
    scheduler.spill().answered(answers, kNow);
    for (const SpillJob& job : scheduler.spill().take_jobs()) jobs.push_back(job);
  }
  /// With a disk that answers each job in `took`.
  template <class Until>
  void run_with_disk(Until until, Duration took = Duration(1)) {
    for (int i = 0; i < 500 && !until(); ++i) {
      spill_step();
      answer_jobs(took);
    }
  }
  std::vector<Sequence*> swapped() const {
    std::vector<Sequence*> sequences;
    for (const auto& [id, sequence] : tenancy().swapped) sequences.push_back(sequence.get());
    return sequences;
  }
  template <class Until>
  void run(Until until) {
    for (int i = 0; i < 500 && !until(); ++i) spill_step();
    REQUIRE(until());
  }

  std::deque<SpillJob> jobs;
  std::vector<SpillEvent> spills;
  std::map<std::uint32_t, Content> file_contents;
};

}  // namespace

TEST_CASE("spill: a sequence that goes to the file and back computes no row again") {
  const std::uint32_t state_blocks = GENERATE(0u, 1u);
  SpillTriple triple(1e15, 3 + state_blocks, 1024, state_blocks);
  triple.run_with_disk([&] { return !triple.scheduler.has_work(); });
  REQUIRE(triple.ends.size() == 3);
  CHECK(triple.has_spilled(Kind::Spilled));
  CHECK(triple.has_spilled(Kind::Returned));
  for (const char* id : {"older", "younger", "youngest"}) {
    CHECK(triple.emitted[id] == 60);
    CHECK(triple.rows[id] == 79);
  }
  CHECK(triple.scheduler.spill().tracker().slots_taken() == 0);
}

TEST_CASE(
    "spill: a disk that owes an answer for too long is given up, and the blocks stay in swap") {
  SpillTriple triple;
  triple.run([&] { return !triple.jobs.empty(); });
  triple.spill_step(kNow + kDiskTimeout);
  CHECK(triple.spills.empty());
  triple.spill_step(kNow + kDiskTimeout + Duration(1));
  REQUIRE(triple.has_spilled(Kind::WriteFailed));
  CHECK(triple.spills[0].why->code == Errc::TimedOut);
}

TEST_CASE("spill: a spill that has no place in a step does not blame the disk") {
  SpillTriple triple;
  triple.run([&] { return triple.tenancy().swapped.size() == 1; });
  SpillTracker books;
  books.lend({.slots = 64, .buffers = 1, .timeout = kDiskTimeout});
  Sequence& sequence = *triple.tenancy().swapped.begin()->second;
  REQUIRE(books.begin_write(sequence, kNow));
  Spill& spill = *books.find(sequence);
  const TimePoint later = kNow + std::chrono::hours(1);
  CHECK(books.late(later).empty());
  books.staged(spill, books.take_pieces(spill), later);
  CHECK(books.late(later + kDiskTimeout).empty());
  CHECK(books.late(later + kDiskTimeout + Duration(1)).size() == 1);

  const SpillJob write = books.take_jobs().at(0);
  (void)books.answered({.job = write, .result = {}, .duration = {}}, later);
  CHECK(books.late(later + std::chrono::hours(1)).empty());
}

TEST_CASE("spill: a spill that waits for staging is late once the disk owes others an answer") {
  SpillTriple triple(1e15, 6);
  triple.run([&] { return triple.tenancy().swapped.size() == 2; });
  SpillTracker books;
  books.lend({.slots = 64, .buffers = 1, .timeout = kDiskTimeout});
  const std::vector<Sequence*> sequences = triple.swapped();
  for (Sequence* each : sequences) REQUIRE(books.begin_write(*each, kNow));
  Spill& first = *books.find(*sequences[0]);
  Spill& second = *books.find(*sequences[1]);
  books.staged(first, books.take_pieces(first), kNow);
  REQUIRE(books.take_pieces(second).empty());
  books.end(first);  // its write goes on
  CHECK(books.late(kNow + kDiskTimeout).empty());
  CHECK(books.late(kNow + kDiskTimeout + Duration(1)) == std::vector<Spill*>{&second});
}

TEST_CASE("spill: a return that waits behind another's write is late once the disk hangs") {
  SpillTriple triple(1e15, 6);
  triple.run([&] { return triple.tenancy().swapped.size() == 2; });
  SpillTracker books;
  books.lend({.slots = 64, .buffers = 64, .timeout = kDiskTimeout});
  const std::vector<Sequence*> sequences = triple.swapped();
  const auto answer_all = [&] {
    for (const SpillJob& job : books.take_jobs())
      (void)books.answered({.job = job, .result = {}, .duration = {}}, kNow);
  };
  REQUIRE(books.begin_write(*sequences[0], kNow));
  Spill& returning = *books.find(*sequences[0]);
  books.staged(returning, books.take_pieces(returning), kNow);
  answer_all();
  books.begin_read(returning);
  books.read_ahead(returning, kNow);
  answer_all();
  REQUIRE(books.begin_write(*sequences[1], kNow));
  Spill& writing = *books.find(*sequences[1]);
  books.staged(writing, books.take_pieces(writing), kNow);  // not answered
  const std::vector<SpillPiece> first{returning.arrived.at(0)};
  returning.arrived.erase(returning.arrived.begin());
  (void)books.returned(returning, first);  // its Clear is queued behind the write

  CHECK(books.late(kNow + kDiskTimeout).empty());
  CHECK(books.late(kNow + kDiskTimeout + Duration(1)).size() == 2);
}

TEST_CASE("spill: while every place of a step is taken a victim is dropped, not kept waiting") {
  SpillTriple triple;
  const LeaseId other = triple.lease(2, 900, 64);
  triple.limit_blocks(1000, {"t2"}, 64);
  for (std::uint32_t i = 0; i < kMaxStepSequences - 2; ++i)
    triple.submit(other, "o" + std::to_string(i), 4, 200);
  triple.run([&] { return triple.preemptions.size() >= 2; });
  CHECK(triple.jobs.empty());
  CHECK(triple.preemptions[1].swapped_blocks == 0);
}

TEST_CASE("spill: copies to staging, however slow, do not make swap dear") {
  SpillTriple triple(1e15, 3, /*block_size_bytes=*/7400);  // swap costs nearly what rows do
  triple.staging_copy = std::chrono::seconds(1);
  triple.run_with_disk([&] { return triple.has_spilled(Kind::Spilled); });
  const auto before = triple.preemptions.size();
  triple.run_with_disk([&] { return triple.preemptions.size() > before; });
  REQUIRE(triple.preemptions.size() > before);
  CHECK(triple.preemptions[before].swapped_blocks > 0);
}

TEST_CASE("spill: the first one is made whatever it may cost, and measures the disk") {
  SpillTriple triple(/*first_bytes_per_second=*/1);
  triple.run([&] { return !triple.jobs.empty(); });
  const int before = static_cast<int>(triple.spills.size());
  triple.answer_jobs(std::chrono::hours(1));
  triple.spill_step();
  CHECK(triple.has_spilled(Kind::Spilled));
  const auto preempted = triple.preemptions.size();
  triple.run_with_disk([&] { return !triple.scheduler.has_work(); }, std::chrono::hours(1));
  CHECK(triple.ends.size() == 3);
  CAPTURE(before, preempted);
  CHECK(std::ranges::count(triple.spills, Kind::Spilled, &SpillEvent::kind) == 1);
}

}  // namespace leasehold::testing
