#include "ipc/table/worker_line.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/child_process.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;

namespace {

/// Both ends of one line, and a shorthand for what a thread announces.
struct Line {
  LineReader reader = required(LineReader::create());
  LineWriter writer = required(LineWriter::attach(required(reader.writer_fd())));

  void announce(std::uint32_t thread, std::uint64_t seq, Touches touches) {
    writer.announce(thread).store(announcement(seq, touches));
  }
  bool is_quiet(const LineReader::Snapshot& seen, Touches scope) const {
    return reader.is_quiet_since(seen, scope);
  }
};

struct ForgedLine {
  std::size_t size_bytes = line_size_bytes();
  std::uint64_t magic = kLineMagic;
  std::uint64_t abi_version = kSegmentAbiVersion;
};

/// The descriptor of a line whose every number can be a lie.
UniqueFd forged_line(const ForgedLine& line) {
  const auto object =
      required(MemoryObject::create({.name = "test", .size_bytes = line.size_bytes}));
  const std::uint64_t header[] = {line.magic, line.size_bytes, line.abi_version};
  REQUIRE(::pwrite(object.fd().get(), header, sizeof(header), 0) == sizeof(header));
  return required(object.fd().duplicate());
}

constexpr Touches kTenantScope = Touches::TenantMemory;
constexpr Touches kEngineScope = Touches::WeightsAndScratch;

}  // namespace

TEST_CASE("worker line: threads that never ran are quiet for every scope") {
  const Line line;
  const auto seen = line.reader.snapshot();
  CHECK(line.is_quiet(seen, kTenantScope));
  CHECK(line.is_quiet(seen, kEngineScope));
}

TEST_CASE("worker line: one that outlived its broker says what the worker announced") {
  Line line;
  line.announce(5, 9, Touches::TenantMemory);
  const LineReader again = required(LineReader::adopt(required(line.reader.writer_fd())));

  const auto seen = again.snapshot();
  CHECK_FALSE(again.is_quiet_since(seen, kTenantScope));
  line.announce(5, 9, Touches::Nothing);
  CHECK(again.is_quiet_since(seen, kTenantScope));
}

TEST_CASE("worker line: a kept one is checked like any other") {
  for (const ForgedLine& lie : {ForgedLine{.size_bytes = 64}, ForgedLine{.magic = 1},
                                ForgedLine{.abi_version = kSegmentAbiVersion + 1}}) {
    const auto adopted = LineReader::adopt(forged_line(lie));
    REQUIRE_FALSE(adopted);
    CHECK(adopted.error().code == Errc::UntrustedSegment);
  }
}

TEST_CASE("worker line: a thread between units is quiet") {
  Line line;
  line.announce(5, 9, Touches::Nothing);
  const auto seen = line.reader.snapshot();
  CHECK(line.is_quiet(seen, kTenantScope));
  CHECK(line.is_quiet(seen, kEngineScope));
}

TEST_CASE("worker line: a unit on tenant memory is waited for by both scopes") {
  Line line;
  line.announce(5, 9, Touches::TenantMemory);
  const auto seen = line.reader.snapshot();
  CHECK_FALSE(line.is_quiet(seen, kTenantScope));
  CHECK_FALSE(line.is_quiet(seen, kEngineScope));
}

TEST_CASE("worker line: a unit on weights and scratch is waited for by the engine scope alone") {
  Line line;
  line.announce(5, 9, Touches::WeightsAndScratch);
  const auto seen = line.reader.snapshot();
  CHECK(line.is_quiet(seen, kTenantScope));
  CHECK_FALSE(line.is_quiet(seen, kEngineScope));
}

TEST_CASE("worker line: a changed announcement is quiet, even when it is busy again") {
  Line line;
  line.announce(5, 9, Touches::TenantMemory);
  const auto seen = line.reader.snapshot();
  line.announce(5, 10, Touches::TenantMemory);
  CHECK(line.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker line: one thread still in its unit is enough to wait") {
  Line line;
  line.announce(0, 4, Touches::TenantMemory);
  line.announce(kMaxGateThreads - 1, 7, Touches::TenantMemory);
  const auto seen = line.reader.snapshot();
  line.announce(0, 4, Touches::Nothing);
  CHECK_FALSE(line.is_quiet(seen, kTenantScope));
  line.announce(kMaxGateThreads - 1, 7, Touches::Nothing);
  CHECK(line.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker line: a unit begun after the snapshot is not waited for") {
  Line line;
  const auto seen = line.reader.snapshot();
  line.announce(5, 1, Touches::TenantMemory);
  CHECK(line.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker line: a value no gate writes is waited for and breaks nothing") {
  Line line;
  line.writer.announce(5).store(~std::uint64_t{0});
  const auto seen = line.reader.snapshot();
  CHECK_FALSE(line.is_quiet(seen, kTenantScope));
  line.writer.announce(5).store(0);
  CHECK(line.is_quiet(seen, kTenantScope));
}

TEST_CASE("worker line: a worker attaches to nothing but a worker line") {
  const auto check_refused = [](UniqueFd fd) {
    const auto writer = LineWriter::attach(std::move(fd));
    REQUIRE_FALSE(writer);
    CHECK(writer.error().code == Errc::UntrustedSegment);
  };
  check_refused(UniqueFd());
  check_refused(UniqueFd(::memfd_create("unsealed", MFD_CLOEXEC)));
  check_refused(forged_line({.size_bytes = line_size_bytes() - 64}));
  check_refused(forged_line({.size_bytes = line_size_bytes() + 64}));
  check_refused(forged_line({.magic = kTableMagic}));
  check_refused(forged_line({.abi_version = kSegmentAbiVersion + 1}));
  check_refused(forged_line({.abi_version = 0}));
  CHECK(LineWriter::attach(forged_line({})));
}

TEST_CASE("worker line: a thread beyond the line is our own broken promise") {
  const LineReader reader = required(LineReader::create());
  const UniqueFd fd = required(reader.writer_fd());
  const auto end = testing::run_in_child([&] {
    const auto writer = required(LineWriter::attach(required(fd.duplicate())));
    writer.announce(kMaxGateThreads).store(1);
    return 0;
  });
  CHECK(end.killed_by == SIGABRT);
}
