/// A cached digest is used for the very file that it was computed of, and for no other.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "kernels/model/gguf/digest_cache.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

struct Fixture {
  Fixture() { write_model(0); }

  /// Sets the modification time to this many seconds after a day in the past.
  void touch(std::int64_t seconds) const {
    const timespec times[2] = {{1'700'000'000 + seconds, 0}, {1'700'000'000 + seconds, 0}};
    REQUIRE(::utimensat(AT_FDCWD, model.c_str(), times, 0) == 0);
  }
  void write_model(std::int64_t seconds) const {
    std::ofstream(model, std::ios::binary | std::ios::trunc) << tiny_llama().bytes();
    touch(seconds);
  }
  GgufFile open() const { return GgufFile::open(model).value(); }
  std::string entry() const {
    for (const auto& each : std::filesystem::directory_iterator(folder.path()))
      if (each.path().extension() == ".digest") return each.path();
    return {};
  }

  TemporaryDirectory folder = TemporaryDirectory::create("cache").value();
  std::string model = folder.file("m.gguf");
  DigestCache cache{folder.path()};
  /// Of no file, so that only the cache can return it.
  ContentDigest digest = *ContentDigest::from_hex(std::string(64, 'c'));
};

}  // namespace

TEST_CASE("digest cache: a digest is found again for the same file, and only for its user") {
  const Fixture fixture;
  CHECK_FALSE(fixture.cache.find(fixture.open()));
  REQUIRE(fixture.cache.store(fixture.open(), fixture.digest));

  CHECK(fixture.cache.find(fixture.open()) == fixture.digest);
  struct stat status{};
  REQUIRE(::stat(fixture.entry().c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  REQUIRE(::chmod(fixture.entry().c_str(), 0666) == 0);
  CHECK_FALSE(fixture.cache.find(fixture.open()));
}

TEST_CASE("digest cache: a file that was written or replaced since is read again") {
  const Fixture fixture;
  REQUIRE(fixture.cache.store(fixture.open(), fixture.digest));
  SECTION("another time") {
    fixture.touch(1);
  }
  SECTION("another inode, with the time of the first one") {
    std::filesystem::copy_file(fixture.model, fixture.model + ".new");
    std::filesystem::rename(fixture.model + ".new", fixture.model);
    fixture.touch(0);
  }
  CHECK_FALSE(fixture.cache.find(fixture.open()));
}

TEST_CASE("digest cache: a damaged entry is ignored, whatever byte it is") {
  const Fixture fixture;
  REQUIRE(fixture.cache.store(fixture.open(), fixture.digest));
  std::ifstream in(fixture.entry(), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto write = [&](const std::string& text) {
    std::ofstream(fixture.entry(), std::ios::binary | std::ios::trunc) << text;
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    write(damaged);
    CHECK_FALSE(fixture.cache.find(fixture.open()));
    write(whole.substr(0, i));
    CHECK_FALSE(fixture.cache.find(fixture.open()));
  }
  write(whole);
  CHECK(fixture.cache.find(fixture.open()) == fixture.digest);
}

TEST_CASE("digest cache: nothing is stored for a file that is being written") {
  const Fixture fixture;
  REQUIRE(::utimensat(AT_FDCWD, fixture.model.c_str(), nullptr, 0) == 0);  // now
  REQUIRE(fixture.cache.store(fixture.open(), fixture.digest));
  CHECK(fixture.entry().empty());
}

TEST_CASE("digest cache: a directory that is missing is an error, and finds nothing") {
  const Fixture fixture;
  const DigestCache none(fixture.folder.file("none"));
  CHECK_FALSE(none.find(fixture.open()));
  CHECK(none.store(fixture.open(), fixture.digest).error().code == Errc::FileNotFound);
}
