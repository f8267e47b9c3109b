#include "ipc/region/memory_object.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "ipc/region/mapping.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;

namespace {

constexpr std::size_t kObjectSize_bytes = 64 * 1024;

MemoryObject make_object(bool final_seals = true) {
  return required(MemoryObject::create(
      {.name = "test", .size_bytes = kObjectSize_bytes, .final_seals = final_seals}));
}

Mapping writable(const MemoryObject& object) {
  return required(Mapping::map(object.fd(), kObjectSize_bytes, MapAccess::ReadWrite));
}

/// The content of a descriptor, read without mapping it.
std::vector<unsigned char> content(const UniqueFd& fd) {
  std::vector<unsigned char> bytes(kObjectSize_bytes, 0xAA);
  REQUIRE(::pread(fd.get(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(kObjectSize_bytes));
  return bytes;
}

bool all_are(const std::vector<unsigned char>& bytes, unsigned char value) {
  return std::ranges::all_of(bytes, [&](unsigned char byte) { return byte == value; });
}

UniqueFd raw_memfd(int seals) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(fd.get(), kObjectSize_bytes) == 0);
  REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

void check_untrusted(UniqueFd fd) {
  const auto object = MemoryObject::adopt(std::move(fd));
  REQUIRE_FALSE(object);
  CHECK(object.error().code == Errc::UntrustedSegment);
}

}  // namespace

TEST_CASE("memory object: it starts as zeros, closed on exec and readable by its owner only") {
  const MemoryObject object = make_object();
  struct stat status{};
  REQUIRE(::fstat(object.fd().get(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0400);
  CHECK((::fcntl(object.fd().get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(all_are(content(object.fd()), 0));
}

TEST_CASE("memory object: its size cannot change") {
  const MemoryObject object = make_object();
  for (const off_t size : {off_t{0}, off_t{kObjectSize_bytes / 2}, off_t{2 * kObjectSize_bytes}}) {
    CHECK(::ftruncate(object.fd().get(), size) == -1);
    CHECK(errno == EPERM);
  }
}

TEST_CASE("memory object: final seals prevent further seals") {
  MemoryObject object = make_object();
  CHECK(object.seal_against_writing().error().code == Errc::SystemError);
}

TEST_CASE("memory object: adopting one keeps its size and identity") {
  const MemoryObject object = make_object();
  const auto adopted = required(MemoryObject::adopt(required(object.fd().duplicate())));
  CHECK(adopted.size_bytes() == kObjectSize_bytes);
  CHECK(required(adopted.identity()) == required(object.identity()));
  CHECK_FALSE(required(make_object().identity()) == required(object.identity()));
}

TEST_CASE("memory object: a descriptor whose size could change is not adopted") {
  check_untrusted(UniqueFd());
  check_untrusted(UniqueFd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)));
  check_untrusted(UniqueFd(::eventfd(0, EFD_CLOEXEC)));
  check_untrusted(UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  check_untrusted(UniqueFd(::open("/tmp", O_PATH | O_CLOEXEC)));
  check_untrusted(raw_memfd(0));
  check_untrusted(raw_memfd(F_SEAL_GROW));
  check_untrusted(raw_memfd(F_SEAL_SHRINK));
  CHECK(MemoryObject::adopt(raw_memfd(F_SEAL_GROW | F_SEAL_SHRINK)));
}

TEST_CASE("memory object: reopened read-only it can be read, never written or mapped writable") {
  const MemoryObject object = make_object();
  std::memset(writable(object).data(), 7, kObjectSize_bytes);
  const UniqueFd reader = required(object.open_read_only());
  CHECK(all_are(content(reader), 7));
  CHECK(::pwrite(reader.get(), "x", 1, 0) == -1);
  CHECK(Mapping::map(reader, kObjectSize_bytes, MapAccess::ReadWrite).error().code ==
        Errc::SystemError);
  const Mapping mapping = required(Mapping::map(reader, kObjectSize_bytes, MapAccess::ReadOnly));
  CHECK(::mprotect(mapping.data(), kObjectSize_bytes, PROT_READ | PROT_WRITE) == -1);
}

TEST_CASE("memory object: sealing is refused while a writable mapping exists, then is permanent") {
  MemoryObject object = make_object(/*final_seals=*/false);
  std::optional<Mapping> loader = writable(object);
  CHECK(object.seal_against_writing().error().code == Errc::StillWritable);

  loader.reset();
  REQUIRE(object.seal_against_writing());

  CHECK(Mapping::map(object.fd(), kObjectSize_bytes, MapAccess::ReadWrite).error().code ==
        Errc::SystemError);
  CHECK(::pwrite(object.fd().get(), "x", 1, 0) == -1);
  CHECK(object.seal_against_writing().error().code == Errc::SystemError);
  CHECK(Mapping::map(object.fd(), kObjectSize_bytes, MapAccess::ReadOnly));
}

TEST_CASE("memory object: after a punch every descriptor reads zeros, and no memory is held") {
  MemoryObject object = make_object();
  const UniqueFd kept = required(object.fd().duplicate());
  std::memset(writable(object).data(), 7, kObjectSize_bytes);
  REQUIRE(all_are(content(kept), 7));
  REQUIRE(required(object.allocated_bytes()) >= kObjectSize_bytes);

  REQUIRE(object.punch());

  CHECK(all_are(content(kept), 0));
  CHECK(required(object.allocated_bytes()) == 0);
}

TEST_CASE("memory object: a punch also releases a last page that the object fills in part") {
  constexpr std::size_t kSize_bytes = kObjectSize_bytes - 100;
  auto object = required(MemoryObject::create({.name = "odd", .size_bytes = kSize_bytes}));
  const Mapping mapping = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  std::memset(mapping.data(), 7, kSize_bytes);

  REQUIRE(object.punch());

  CHECK(required(object.allocated_bytes()) == 0);
}

TEST_CASE("memory object: a stray mapping that reads after the punch is detected") {
  MemoryObject object = make_object();
  const Mapping stray = writable(object);
  std::memset(stray.data(), 7, kObjectSize_bytes);
  REQUIRE(object.punch());
  REQUIRE(required(object.allocated_bytes()) == 0);

  const auto seen = *static_cast<volatile std::byte*>(stray.data());

  CHECK(seen == std::byte{0});
  CHECK(required(object.allocated_bytes()) > 0);
}

TEST_CASE("memory object: an object sealed against writing cannot be punched") {
  MemoryObject object = make_object(/*final_seals=*/false);
  REQUIRE(object.seal_against_writing());
  CHECK(object.punch().error().code == Errc::SystemError);
}
