#include "ipc/table/table_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "ipc/table/lease_table.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;
using LeaseChange = LeaseTable::LeaseChange;

namespace {

constexpr WorkerId kReadingWorker{3};
constexpr TimePoint kGrantDeadline{9'000};
constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

/// A table with arbitrary numbers, as a hostile process may send it.
struct ForgedTable {
  std::uint64_t magic = kTableMagic;
  std::uint64_t said_size_bytes = table_size_bytes(8);
  std::uint32_t slot_count = 8;
  std::uint32_t worker_count = kMaxWorkers;
  std::uint64_t abi_version = kSegmentAbiVersion;
  std::size_t real_size_bytes = table_size_bytes(8);
  int seals = kFixedSize;
  int open_mode = O_RDONLY;

  UniqueFd send() const {
    const TableHeader header{magic, said_size_bytes, slot_count, worker_count, abi_version};
    const UniqueFd memory(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::pwrite(memory.get(), &header, sizeof(header), 0) == sizeof(header));
    REQUIRE(::ftruncate(memory.get(), static_cast<off_t>(real_size_bytes)) == 0);
    REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, seals) == 0);
    const std::string path = fmt::format("/proc/self/fd/{}", memory.get());
    return UniqueFd(::open(path.c_str(), open_mode | O_CLOEXEC));
  }
};

void check_refused(UniqueFd fd, Errc code) {
  const auto reader = TableReader::attach(std::move(fd));
  REQUIRE_FALSE(reader);
  CHECK(reader.error().code == code);
  CHECK_FALSE(reader.error().detail.empty());
}

void check_untrusted(const ForgedTable& forged) {
  check_refused(forged.send(), Errc::UntrustedSegment);
}

struct Pair {
  LeaseTable table = required(LeaseTable::create(8));
  TableReader reader = required(TableReader::attach(required(table.reader_fd())));
};

}  // namespace

TEST_CASE("table reader: a valid table is attached") {
  const auto reader = TableReader::attach(ForgedTable{}.send());
  REQUIRE(reader);
  CHECK(reader->slot_count() == 8);
}

TEST_CASE("table reader: a writable descriptor is rejected") {
  check_untrusted({.open_mode = O_RDWR});
}

TEST_CASE("table reader: memory whose size could change is rejected") {
  check_untrusted({.seals = 0});
  check_untrusted({.seals = F_SEAL_SHRINK});
  check_untrusted({.seals = F_SEAL_GROW});
}

TEST_CASE("table reader: a descriptor of anything but a memory object is rejected") {
  check_refused(UniqueFd(), Errc::UntrustedSegment);
  check_refused(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), Errc::UntrustedSegment);
  check_refused(UniqueFd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), Errc::UntrustedSegment);
}

TEST_CASE("table reader: memory too small for a header is rejected before it is read") {
  check_untrusted({.real_size_bytes = table_size_bytes(0) - 1});
  check_untrusted({.real_size_bytes = 32});
  check_untrusted({.real_size_bytes = 0});
}

TEST_CASE("table reader: a wrong magic, version or size is a final error") {
  check_untrusted({.magic = kWorkerSegmentMagic});
  check_untrusted({.magic = 0});
  check_untrusted({.abi_version = kSegmentAbiVersion + 1});
  check_untrusted({.said_size_bytes = table_size_bytes(8) + 64});
  check_untrusted({.slot_count = 9});
  check_untrusted({.slot_count = 7});
  check_untrusted({.slot_count = ~0u});
  check_untrusted({.worker_count = kMaxWorkers + 1});
  check_untrusted({.worker_count = 0});
}

TEST_CASE("table reader: a version not stored yet is retryable") {
  check_refused(ForgedTable{.magic = 0, .abi_version = 0}.send(), Errc::ConnectionLost);
  CHECK(is_retryable(Errc::ConnectionLost));
}

TEST_CASE("table reader: the reader sees the broker's stores") {
  Pair pair;
  pair.table.grant({2, 5}, kGrantDeadline);
  CHECK(pair.reader.word_of({2, 5}) == LeaseWord::make(5, LeaseState::Live));
  CHECK(pair.reader.deadline({2, 5}) == kGrantDeadline);
  CHECK(pair.reader.revocations(kReadingWorker).load() == 1);
  pair.table.store_words(
      kReadingWorker,
      std::array{LeaseChange{{2, 5}, LeaseState::Revoked, RevokeReason::TtlExpired}},
      kGrantDeadline);
  CHECK(pair.reader.word_of({2, 5}) ==
        LeaseWord::make(5, LeaseState::Revoked, RevokeReason::TtlExpired));
  CHECK(pair.reader.revocations(kReadingWorker).load() == 2);
}

TEST_CASE("table reader: a dependency compares with the live word of its own generation") {
  Pair pair;
  pair.table.grant({2, 5}, kGrantDeadline);
  const LeaseDependency dependency = required(pair.reader.dependency({2, 5}));
  CHECK(dependency.slot == 2);
  CHECK(dependency.granted == LeaseWord::make(5, LeaseState::Live));
  CHECK(dependency.word->load() == dependency.granted.bits);
  CHECK(required(pair.reader.dependency({2, 4})).granted.bits != dependency.word->load());
}

TEST_CASE(
    "table reader: a slot that has moved on to another generation is fenced for the old one") {
  Pair pair;
  pair.table.grant({2, 5}, kGrantDeadline);
  pair.table.store_words(
      kReadingWorker, std::array{LeaseChange{{2, 5}, LeaseState::Fenced, RevokeReason::Released}},
      {});
  pair.table.grant({2, 6}, kGrantDeadline);
  CHECK(pair.reader.word_of({2, 5}) == LeaseWord::make(5, LeaseState::Fenced));
  CHECK(pair.reader.word_of({2, 6}).state() == LeaseState::Live);
}

TEST_CASE("table reader: a slot beyond the table is an unknown lease") {
  const Pair pair;
  for (const std::uint32_t slot : {8u, 9u, ~0u}) {
    const auto dependency = pair.reader.dependency({slot, 1});
    REQUIRE_FALSE(dependency);
    CHECK(dependency.error().code == Errc::UnknownLease);
    CHECK(pair.reader.word_of({slot, 1}) == LeaseWord{});
  }
  CHECK(pair.reader.dependency({7, 1}));
}

TEST_CASE("table reader: a worker that stores to its table dies by SIGSEGV") {
  const LeaseTable table = required(LeaseTable::create(8));
  const UniqueFd fd = required(table.reader_fd());
  const auto end = testing::run_in_child([&] {
    const auto reader = required(TableReader::attach(required(fd.duplicate())));
    const_cast<std::atomic<std::uint64_t>&>(reader.revocations(kReadingWorker)).store(77);
    return 0;
  });
  CHECK(end.killed_by == SIGSEGV);
  CHECK(table.revocations(kReadingWorker) == 1);
}
