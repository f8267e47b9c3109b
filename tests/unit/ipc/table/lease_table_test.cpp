#include "ipc/table/lease_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "ipc/table/table_reader.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;
using LeaseChange = LeaseTable::LeaseChange;

namespace {

constexpr WorkerId kWorker{3};
constexpr TimePoint kNow{5'000};
constexpr TimePoint kDeadline{9'000};

LeaseTable new_table(std::uint32_t slots = 8) {
  return required(LeaseTable::create(slots));
}

void flip(LeaseTable& table, LeaseId lease, LeaseState to, TimePoint now = kNow) {
  table.store_words(kWorker, std::array{LeaseChange{lease, to, RevokeReason::Operator}}, now);
}

void revoke(LeaseTable& table, LeaseId lease, TimePoint now = kNow) {
  flip(table, lease, LeaseState::Revoked, now);
}

void fence(LeaseTable& table, LeaseId lease, TimePoint now = kNow) {
  flip(table, lease, LeaseState::Fenced, now);
}

/// How a child ends that runs `action` on a table. The table is the child's own: a mapping is not
/// inherited.
template <class Action>
testing::ChildExit child_asking(Action action) {
  return testing::run_in_child([&] {
    LeaseTable table = new_table();
    table.grant({2, 5}, kDeadline);
    action(table);
    return 0;
  });
}

void check_aborts(const testing::ChildExit& end, const char* promise) {
  CHECK(end.killed_by == SIGABRT);
  CHECK(end.error_output.find(promise) != std::string::npos);
}

}  // namespace

TEST_CASE("lease table: it starts with every slot closed and every counter at one") {
  const LeaseTable table = new_table(8);
  CHECK(table.slot_count() == 8);
  for (std::uint32_t slot = 0; slot < 8; ++slot) CHECK(table.word(slot) == LeaseWord{});
  for (std::uint64_t worker = 0; worker < kMaxWorkers; ++worker)
    CHECK(table.revocations(WorkerId{worker}) == 1);
}

TEST_CASE("lease table: a grant makes the slot live under its generation and no counter moves") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Live));
  CHECK(table.revocations(kWorker) == 1);
}

TEST_CASE(
    "lease table: a lease goes from live to revoked to fenced and its slot to the next "
    "generation") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  revoke(table, {2, 5});
  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Revoked, RevokeReason::Operator));
  fence(table, {2, 5});
  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Fenced, RevokeReason::Operator));
  table.grant({2, 6}, kDeadline);
  CHECK(table.word(2) == LeaseWord::make(6, LeaseState::Live));
}

TEST_CASE("lease table: revoking a thousand words moves the worker's counter once") {
  constexpr std::uint32_t kLeases = 1'000;
  LeaseTable table = new_table(kLeases);
  std::vector<LeaseChange> flips;
  for (std::uint32_t slot = 0; slot < kLeases; ++slot) {
    table.grant({slot, slot + 1}, kDeadline);
    flips.push_back({{slot, slot + 1}, LeaseState::Revoked, RevokeReason::WorkerGone});
  }

  table.store_words(kWorker, flips, kNow);

  CHECK(table.revocations(kWorker) == 2);
  CHECK(table.revocations(WorkerId{kWorker.value + 1}) == 1);
  for (std::uint32_t slot = 0; slot < kLeases; ++slot)
    REQUIRE(table.word(slot) ==
            LeaseWord::make(slot + 1, LeaseState::Revoked, RevokeReason::WorkerGone));
}

TEST_CASE("lease table: the flip time is stored only when the word leaves Live") {
  LeaseTable table = new_table();
  const auto reader = required(TableReader::attach(required(table.reader_fd())));
  table.grant({2, 5}, kDeadline);
  CHECK(reader.word_stored_at({2, 5}) == TimePoint{0});
  revoke(table, {2, 5}, TimePoint{7'000});
  fence(table, {2, 5}, TimePoint{8'000});
  CHECK(reader.word_stored_at({2, 5}) == TimePoint{7'000});
}

TEST_CASE("lease table: a new grant clears the drain and the flip time of the lease before") {
  LeaseTable table = new_table();
  const auto reader = required(TableReader::attach(required(table.reader_fd())));
  table.grant({2, 5}, kDeadline);
  table.set_drain_deadline({2, 5}, TimePoint{6'000});
  CHECK(reader.drain_deadline({2, 5}) == TimePoint{6'000});
  fence(table, {2, 5});
  table.grant({2, 6}, TimePoint{12'000});
  CHECK(reader.deadline({2, 6}) == TimePoint{12'000});
  CHECK(reader.drain_deadline({2, 6}) == TimePoint{0});
  CHECK(reader.word_stored_at({2, 6}) == TimePoint{0});
}

TEST_CASE("lease table: a live lease and one whose slot is reused have no time since a flip") {
  LeaseTable table = new_table();
  const auto reader = required(TableReader::attach(required(table.reader_fd())));
  constexpr TimePoint kLater{9'000};
  table.grant({2, 5}, kDeadline);
  CHECK_FALSE(reader.since_word_stored({2, 5}, kLater));
  fence(table, {2, 5}, TimePoint{7'000});
  CHECK(reader.since_word_stored({2, 5}, kLater) == Duration{2'000});
  table.grant({2, 6}, kDeadline);
  fence(table, {2, 6}, TimePoint{8'000});
  CHECK_FALSE(reader.since_word_stored({2, 5}, kLater));
  CHECK_FALSE(reader.since_word_stored({8, 1}, kLater));
}

TEST_CASE("lease table: a renewal changes only the deadline") {
  LeaseTable table = new_table();
  const auto reader = required(TableReader::attach(required(table.reader_fd())));
  table.grant({2, 5}, kDeadline);
  table.set_deadline({2, 5}, TimePoint{11'000});
  CHECK(reader.deadline({2, 5}) == TimePoint{11'000});
  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Live));
  CHECK(table.revocations(kWorker) == 1);
}

TEST_CASE("lease table: a generation that does not grow aborts the broker") {
  constexpr auto* kPromise = "generations only grow";
  check_aborts(child_asking([](LeaseTable& t) { t.grant({2, 5}, kDeadline); }), kPromise);
  check_aborts(child_asking([](LeaseTable& t) { t.grant({2, 4}, kDeadline); }), kPromise);
  check_aborts(child_asking([](LeaseTable& t) { t.grant({3, 0}, kDeadline); }), kPromise);
  CHECK(child_asking([](LeaseTable& t) { t.grant({3, 1}, kDeadline); }).exit_code == 0);
}

TEST_CASE("lease table: a word that does not move forward in its generation aborts the broker") {
  constexpr auto* kPromise = "a word only moves forward within its generation";
  const auto flip_to = [](LeaseId lease, LeaseState state) {
    return [=](LeaseTable& table) { flip(table, lease, state); };
  };
  const auto twice = [&](LeaseState first, LeaseState then) {
    return [=](LeaseTable& table) {
      flip(table, {2, 5}, first);
      flip(table, {2, 5}, then);
    };
  };
  check_aborts(child_asking(flip_to({2, 5}, LeaseState::Live)), kPromise);
  check_aborts(child_asking(flip_to({2, 5}, LeaseState::Closed)), kPromise);
  check_aborts(child_asking(flip_to({2, 4}, LeaseState::Revoked)), kPromise);
  check_aborts(child_asking(flip_to({2, 6}, LeaseState::Revoked)), kPromise);
  check_aborts(child_asking(twice(LeaseState::Revoked, LeaseState::Revoked)), kPromise);
  check_aborts(child_asking(twice(LeaseState::Fenced, LeaseState::Revoked)), kPromise);
  CHECK(child_asking(twice(LeaseState::Revoked, LeaseState::Fenced)).exit_code == 0);
}

// ---------------------------------------------------------------- another process writes

namespace {

/// The table as another process of the same user reaches it: reopened for writing.
class Intruder {
 public:
  explicit Intruder(const LeaseTable& table) {
    const UniqueFd reader = required(table.reader_fd());
    ::fchmod(reader.get(), 0600);
    const std::string path = "/proc/self/fd/" + std::to_string(reader.get());
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(fd);
    mapping_ =
        required(Mapping::map(fd, table_size_bytes(table.slot_count()), MapAccess::ReadWrite));
  }
  LeaseSlot& slot(std::uint32_t index) { return view().slot(index); }
  TableView<std::byte> view() { return {mapping_->data()}; }

 private:
  std::optional<Mapping> mapping_;
};

}  // namespace

TEST_CASE("lease table: an untouched table needs no repair") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  table.set_deadline({2, 5}, TimePoint{12'000});
  table.set_drain_deadline({2, 5}, TimePoint{11'000});
  revoke(table, {2, 5});
  fence(table, {2, 5});

  CHECK(table.repair().empty());
  CHECK(table.revocations(kWorker) == 3);
}

TEST_CASE("lease table: a word that another process stored is repaired and every counter moves") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  revoke(table, {2, 5});
  Intruder intruder(table);
  intruder.slot(2).word = LeaseWord::make(5, LeaseState::Live).bits;

  CHECK(table.repair() == std::vector{TableEntry{TablePart::Slot, 2}});

  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Revoked, RevokeReason::Operator));
  CHECK(table.revocations(kWorker) == 3);
  CHECK(table.revocations(WorkerId{0}) == 2);
  CHECK(table.repair().empty());
}

TEST_CASE("lease table: deadlines, counters and header are repaired like the words") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  Intruder intruder(table);
  intruder.slot(2).deadline_boottime_ns = INT64_MAX;
  intruder.view().counter(3).revocations = 0;
  intruder.view().header().slot_count = 1u << 30;

  const auto changed = table.repair();

  CHECK(changed == std::vector{TableEntry{TablePart::Header, 0}, TableEntry{TablePart::Slot, 2},
                               TableEntry{TablePart::Counter, 3}});
  CHECK(intruder.slot(2).deadline_boottime_ns == kDeadline.boottime_ns);
  CHECK(table.revocations(WorkerId{3}) == 2);
  CHECK(intruder.view().header().slot_count == 8);
}

TEST_CASE("lease table: no foreign word aborts the broker, and every foreign store is found") {
  LeaseTable table = new_table();
  table.grant({2, 5}, kDeadline);
  Intruder intruder(table);
  intruder.slot(2).word = ~std::uint64_t{0};

  revoke(table, {2, 5});

  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Revoked, RevokeReason::Operator));
  CHECK(table.has_detected_tampering());
  CHECK(table.repair() == std::vector{TableEntry{TablePart::Slot, 2}});
  CHECK_FALSE(table.has_detected_tampering());
}

TEST_CASE("lease table: a foreign word in a free slot ends no lease that is granted there") {
  LeaseTable table = new_table();
  Intruder intruder(table);
  intruder.slot(2).word = ~std::uint64_t{0};

  table.grant({2, 5}, kDeadline);

  CHECK(table.word(2) == LeaseWord::make(5, LeaseState::Live));
  CHECK(table.repair() == std::vector{TableEntry{TablePart::FreeSlot, 2}});
}

TEST_CASE("lease table: a kept table continues with its state") {
  LeaseTable first = new_table();
  first.grant({2, 5}, kDeadline);
  first.grant({3, 6}, kDeadline);
  revoke(first, {3, 6});
  const TableReader worker = required(TableReader::attach(required(first.reader_fd())));

  LeaseTable second = required(LeaseTable::adopt(required(first.writable_fd().duplicate())));

  CHECK(second.slot_count() == 8);
  CHECK(second.word(2) == LeaseWord::make(5, LeaseState::Live));
  CHECK(second.deadline(2) == kDeadline);
  CHECK(second.word_stored_at(3) == kNow);
  CHECK(second.revocations(kWorker) == 3);
  revoke(second, {2, 5});
  CHECK(worker.word_of({2, 5}).state() == LeaseState::Revoked);
  CHECK(worker.revocations(kWorker).load() == 4);
}

TEST_CASE("lease table: a broker with a kept table makes every worker compare again") {
  const LeaseTable died_between_word_and_counter = new_table();
  const auto before = died_between_word_and_counter.revocations(kWorker);
  const LeaseTable next = required(
      LeaseTable::adopt(required(died_between_word_and_counter.writable_fd().duplicate())));
  for (std::uint64_t worker = 0; worker < kMaxWorkers; ++worker) {
    CHECK(next.revocations({worker}) > before);
  }
}

TEST_CASE("lease table: a kept descriptor is checked before a word is stored") {
  const LeaseTable table = new_table();
  const auto read_only = LeaseTable::adopt(required(table.reader_fd()));
  const MemoryObject blank =
      required(MemoryObject::create({.name = "blank", .size_bytes = table_size_bytes(8)}));
  const auto no_table = LeaseTable::adopt(required(blank.fd().duplicate()));
  const MemoryObject tiny = required(MemoryObject::create({.name = "tiny", .size_bytes = 64}));
  const auto too_small = LeaseTable::adopt(required(tiny.fd().duplicate()));

  for (const auto* refused : {&read_only, &no_table, &too_small}) {
    REQUIRE_FALSE(*refused);
    CHECK(refused->error().code == Errc::UntrustedSegment);
  }
}
