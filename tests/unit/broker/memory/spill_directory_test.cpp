#include "broker/memory/spill_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kFileBytes = 1 << 20;

Errc refusal(const std::string& path) {
  const auto opened = SpillDirectory::open(path);
  REQUIRE_FALSE(opened);
  return opened.error().code;
}

}  // namespace

TEST_CASE("spill directory: a file has no name, its size and all its space") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const auto spill = SpillDirectory::open(directory.path()).value();
  const UniqueFd file = spill.create_file(kFileBytes).value();
  struct stat status{};
  REQUIRE(::fstat(file.get(), &status) == 0);
  CHECK(status.st_size == kFileBytes);
  CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 >= kFileBytes);
  CHECK(status.st_nlink == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("spill directory: one that is missing, no directory or a symbolic link is refused") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const std::string link = directory.file("link");
  const auto target = TemporaryDirectory::create("target").value();
  std::filesystem::create_directory_symlink(target.path(), link);
  CHECK(refusal(directory.file("missing")) == Errc::BadRequest);
  CHECK(refusal("/dev/null") == Errc::BadRequest);
  CHECK(refusal(link) == Errc::BadRequest);
  CHECK(refusal(link + "/") == Errc::BadRequest);
}

TEST_CASE("spill directory: one that others may write to is refused") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const mode_t mode = GENERATE(0777, 0770, 0702);
  REQUIRE(::chmod(directory.path().c_str(), mode) == 0);
  CHECK(refusal(directory.path()) == Errc::PermissionDenied);
}

TEST_CASE("spill directory: a disk without the room is full, also when that is found later") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const auto spill = SpillDirectory::open(directory.path()).value();
  const auto too_large = spill.create_file(std::uint64_t{1} << 50);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == Errc::DiskFull);
  const FileSizeLimit limit(kFileBytes);
  CHECK(spill.create_file(kFileBytes));
  const auto beyond = spill.create_file(kFileBytes + 1);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == Errc::DiskFull);
}

TEST_CASE("spill directory: one that was removed gives a typed error") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const auto spill = SpillDirectory::open(directory.path()).value();
  std::filesystem::remove(directory.path());
  const auto created = spill.create_file(kFileBytes);
  REQUIRE_FALSE(created);
  CHECK(created.error().code == Errc::BadRequest);
}

}  // namespace leasehold::testing
