#include "tests/checks/runner/memory_check.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::runner;

namespace {

UniqueFd memory_object(off_t size_bytes) {
  UniqueFd object(::memfd_create("memory-check", MFD_CLOEXEC));
  REQUIRE(object);
  REQUIRE(::ftruncate(object.get(), size_bytes) == 0);
  return object;
}

}  // namespace

TEST_CASE("memory check: finds one nonzero byte, and none after a punch") {
  const UniqueFd object = memory_object(1 << 20);
  REQUIRE(::pwrite(object.get(), "x", 1, 700'000) == 1);
  CHECK(read_memory(object)->nonzero_bytes == 1);
  CHECK(read_memory(object)->allocated_bytes > 0);

  REQUIRE(::fallocate(object.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20) == 0);

  CHECK(read_memory(object)->nonzero_bytes == 0);
  CHECK(read_memory(object)->allocated_bytes == 0);
}

TEST_CASE("memory check: reading empty memory allocates nothing") {
  const UniqueFd object = memory_object(1 << 20);
  (void)read_memory(object);

  CHECK(read_memory(object)->allocated_bytes == 0);
}
