#include "ipc/region/locked_mapper.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "ipc/region/memory_object.hpp"
#include "tests/support/required.hpp"

namespace leasehold {
namespace {

using testing::required;

constexpr std::size_t kMiB = 1 << 20;

std::uint64_t locked_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmLck:")) return std::stoull(line.substr(6)) << 10;
  FAIL("no VmLck");
  return 0;
}

UniqueFd region(std::size_t size_bytes) {
  return required(MemoryObject::create({.name = "region", .size_bytes = size_bytes})).release();
}

/// A limit of locked memory that holds for this thread, also if it is root's.
class LockLimit {
 public:
  explicit LockLimit(std::uint64_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before_) == 0);
    const rlimit lower{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &lower) == 0);
    REQUIRE(::syscall(SYS_capget, &header_, capabilities_) == 0);
    auto without = std::to_array(capabilities_);
    without[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    REQUIRE(::syscall(SYS_capset, &header_, without.data()) == 0);
  }
  ~LockLimit() {
    (void)::syscall(SYS_capset, &header_, capabilities_);
    (void)::setrlimit(RLIMIT_MEMLOCK, &before_);
  }
  LockLimit(const LockLimit&) = delete;
  LockLimit& operator=(const LockLimit&) = delete;

 private:
  rlimit before_{};
  __user_cap_header_struct header_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct capabilities_[2] = {};
};

void check_says_what_to_set(const Error& error) {
  CHECK(error.code == Errc::BadRequest);
  for (const char* part : {"2097152 bytes more", "RLIMIT_MEMLOCK is 1048576 bytes",
                           "LimitMEMLOCK=infinity", "omit --mlock"}) {
    CAPTURE(error.detail, part);
    CHECK(error.detail.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("locked mapper: what is mapped to be read is locked until it is unmapped") {
  const std::uint64_t before = locked_bytes();
  std::optional<LeasedMapping> mapping =
      required(locked_mapper().map(region(4 * kMiB), 4 * kMiB, MapAccess::ReadOnly));
  CHECK(locked_bytes() == before + 4 * kMiB);
  mapping.reset();
  CHECK(locked_bytes() == before);
}

TEST_CASE("locked mapper: what is mapped to be filled is not locked") {
  const std::uint64_t before = locked_bytes();
  const LeasedMapping mapping =
      required(locked_mapper().map(region(4 * kMiB), 4 * kMiB, MapAccess::ReadWrite));
  CHECK(locked_bytes() == before);
}

TEST_CASE("locked mapper: beyond the limit it maps nothing and says what to set") {
  const LockLimit limit(kMiB);
  const std::uint64_t before = locked_bytes();
  const auto refused = locked_mapper().map(region(2 * kMiB), 2 * kMiB, MapAccess::ReadOnly);
  REQUIRE_FALSE(refused);
  check_says_what_to_set(refused.error());
  CHECK(locked_bytes() == before);
}

TEST_CASE("locked mapper: locking makes no page present, and locks what is made present later") {
  const MemoryObject object =
      required(MemoryObject::create({.name = "region", .size_bytes = 4 * kMiB}));
  const std::uint64_t before = locked_bytes();
  const Mapping mapping = required(Mapping::map(object.fd(), 4 * kMiB, MapAccess::ReadOnly));
  REQUIRE(lock_present_pages(mapping));
  CHECK(locked_bytes() == before + 4 * kMiB);
  CHECK(required(object.allocated_bytes()) == 0);
  REQUIRE(mapping.populate(MapAccess::ReadOnly));
  CHECK(required(object.allocated_bytes()) == 4 * kMiB);
}

TEST_CASE("locked mapper: the check answers before anything is mapped, and locks nothing") {
  const std::uint64_t before = locked_bytes();
  const auto check = [](std::vector<std::uint64_t> sizes) { return check_lockable(sizes); };
  CHECK(check({}));
  CHECK(check({2 * kMiB}));
  const LockLimit limit(kMiB);
  CHECK(check({kMiB / 2}));
  CHECK(check({kMiB / 2, kMiB / 2 - before}));
  const auto refused = check({kMiB, kMiB});
  REQUIRE_FALSE(refused);
  check_says_what_to_set(refused.error());
  CHECK_FALSE(check({kMiB - 4096 - before, 1, 1}));  // each part of a page counts as one
  CHECK(locked_bytes() == before);
}

TEST_CASE("locked mapper: only what the limit forbids is blamed on it") {
  const LockLimits limits{.limit_bytes = 4 * kMiB, .locked_bytes = 3 * kMiB};
  CHECK(lock_error(EPERM, 1, limits).code == Errc::BadRequest);
  CHECK(lock_error(ENOMEM, kMiB + 1, limits).code == Errc::BadRequest);
  for (const Error& other : {lock_error(ENOMEM, kMiB, limits), lock_error(EAGAIN, 2 * kMiB, limits),
                             lock_error(ENOMEM, kMiB, {.limit_bytes = RLIM_INFINITY})}) {
    CAPTURE(other.detail);
    CHECK(other.code == Errc::OutOfMemory);
    CHECK(other.detail.find("RLIMIT_MEMLOCK") == std::string::npos);
  }
}

}  // namespace leasehold
