#include "ipc/table/worker_segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/child_process.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;

namespace {

/// Both ends of one segment.
struct Segment {
  WorkerSegmentReader reader = required(WorkerSegmentReader::create());
  WorkerSegmentWriter writer = required(WorkerSegmentWriter::attach(required(reader.writer_fd())));

  void announce(std::uint32_t thread, std::uint64_t seq, Touches touches) {
    writer.announce(thread).store(announcement(seq, touches));
  }
  bool is_quiet(const WorkerSegmentReader::Snapshot& seen, Touches scope) const {
    return reader.is_quiet_since(seen, scope);
  }
};

struct ForgedSegment {
  std::size_t size_bytes = worker_segment_size_bytes();
  std::uint64_t magic = kWorkerSegmentMagic;
  std::uint64_t abi_version = kSegmentAbiVersion;
};

/// The descriptor of a segment with arbitrary numbers.
UniqueFd forged_segment(const ForgedSegment& segment) {
  const auto object =
      required(MemoryObject::create({.name = "test", .size_bytes = segment.size_bytes}));
  const std::uint64_t header[] = {segment.magic, segment.size_bytes, segment.abi_version};
  REQUIRE(::pwrite(object.fd().get(), header, sizeof(header), 0) == sizeof(header));
  return required(object.fd().duplicate());
}

constexpr Touches kTenantScope = Touches::TenantMemory;
constexpr Touches kEngineScope = Touches::WeightsAndScratch;

}  // namespace

TEST_CASE("worker segment: a unit is waited for by the scopes that it can reach") {
  Segment segment;
  const auto check_quiet = [&segment](bool for_tenant, bool for_engine) {
    const auto seen = segment.reader.snapshot();
    CHECK(segment.is_quiet(seen, kTenantScope) == for_tenant);
    CHECK(segment.is_quiet(seen, kEngineScope) == for_engine);
  };
  check_quiet(true, true);  // no thread ever ran
  segment.announce(5, 9, Touches::TenantMemory);
  check_quiet(false, false);
  segment.announce(5, 9, Touches::WeightsAndScratch);
  check_quiet(true, false);
  segment.announce(5, 9, Touches::Nothing);  // between units
  check_quiet(true, true);
}

TEST_CASE("worker segment: a kept segment has the worker's announcements") {
  Segment segment;
  segment.announce(5, 9, Touches::TenantMemory);
  const WorkerSegmentReader again =
      required(WorkerSegmentReader::adopt(required(segment.reader.writer_fd())));

  const auto seen = again.snapshot();
  CHECK_FALSE(again.is_quiet_since(seen, kTenantScope));
  segment.announce(5, 9, Touches::Nothing);
  CHECK(again.is_quiet_since(seen, kTenantScope));
}

TEST_CASE("worker segment: a kept segment is checked like any other") {
  for (const ForgedSegment& lie : {ForgedSegment{.size_bytes = 64}, ForgedSegment{.magic = 1},
                                   ForgedSegment{.abi_version = kSegmentAbiVersion + 1}}) {
    const auto adopted = WorkerSegmentReader::adopt(forged_segment(lie));
    REQUIRE_FALSE(adopted);
    CHECK(adopted.error().code == Errc::UntrustedSegment);
  }
}

TEST_CASE("worker segment: a changed announcement is quiet, even when it is busy again") {
  Segment segment;
  segment.announce(5, 9, Touches::TenantMemory);
  const auto seen = segment.reader.snapshot();
  segment.announce(5, 10, Touches::TenantMemory);
  CHECK(segment.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker segment: one thread still in its unit is enough to wait") {
  Segment segment;
  segment.announce(0, 4, Touches::TenantMemory);
  segment.announce(kMaxGateThreads - 1, 7, Touches::TenantMemory);
  const auto seen = segment.reader.snapshot();
  segment.announce(0, 4, Touches::Nothing);
  CHECK_FALSE(segment.is_quiet(seen, kTenantScope));
  segment.announce(kMaxGateThreads - 1, 7, Touches::Nothing);
  CHECK(segment.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker segment: a unit begun after the snapshot is not waited for") {
  Segment segment;
  const auto seen = segment.reader.snapshot();
  segment.announce(5, 1, Touches::TenantMemory);
  CHECK(segment.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker segment: a value that no gate writes is waited for and does no harm") {
  Segment segment;
  segment.writer.announce(5).store(~std::uint64_t{0});
  const auto seen = segment.reader.snapshot();
  CHECK_FALSE(segment.is_quiet(seen, kTenantScope));
  segment.writer.announce(5).store(0);
  CHECK(segment.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker segment: a worker attaches only to a worker segment") {
  const auto check_refused = [](UniqueFd fd) {
    const auto writer = WorkerSegmentWriter::attach(std::move(fd));
    REQUIRE_FALSE(writer);
    CHECK(writer.error().code == Errc::UntrustedSegment);
  };
  check_refused(UniqueFd());
  check_refused(UniqueFd(::memfd_create("unsealed", MFD_CLOEXEC)));
  check_refused(forged_segment({.size_bytes = worker_segment_size_bytes() - 64}));
  check_refused(forged_segment({.size_bytes = worker_segment_size_bytes() + 64}));
  check_refused(forged_segment({.magic = kTableMagic}));
  check_refused(forged_segment({.abi_version = kSegmentAbiVersion + 1}));
  check_refused(forged_segment({.abi_version = 0}));
  CHECK(WorkerSegmentWriter::attach(forged_segment({})));
}

TEST_CASE("worker segment: a thread index beyond the segment aborts") {
  const WorkerSegmentReader reader = required(WorkerSegmentReader::create());
  const UniqueFd fd = required(reader.writer_fd());
  const auto end = testing::run_in_child([&] {
    const auto writer = required(WorkerSegmentWriter::attach(required(fd.duplicate())));
    writer.announce(kMaxGateThreads).store(1);
    return 0;
  });
  CHECK(end.killed_by == SIGABRT);
}
