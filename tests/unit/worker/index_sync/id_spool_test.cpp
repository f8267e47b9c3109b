#include "worker/index_sync/id_spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold {
namespace {

using OwnedIds = std::vector<IdSpool::OwnedId>;
const IdSpool::OwnedId kFirst{{"ann"}, {"req-1"}};
const IdSpool::OwnedId kSecond{{"bob"}, {"req-2"}};
const IdSpool::OwnedId kThird{{std::string(64, 't')}, {std::string(64, 'i')}};

struct SpoolFile {
  TemporaryDirectory directory = TemporaryDirectory::create("spool").value();
  std::string path = directory.file("ids");

  IdSpool open(std::size_t max_ids = IdSpool::kMaxIds) const {
    return IdSpool::open(path, max_ids).value();
  }
  OwnedIds left() const { return open().take_leftover_ids(); }
  Errc error() const { return IdSpool::open(path).error().code; }
};

}  // namespace

TEST_CASE("id spool: the ids that were not erased are found by the next process, once") {
  const SpoolFile file;
  {
    IdSpool spool = file.open();
    CHECK(spool.take_leftover_ids().empty());
    for (const auto& owned : {kFirst, kSecond, kFirst, kThird}) spool.keep(owned);
    spool.erase(kFirst.id);
    spool.erase({"unknown"});
    CHECK(spool.size() == 2);
  }
  CHECK(file.left() == OwnedIds{kSecond, kThird});
  IdSpool spool = file.open();
  CHECK(std::filesystem::file_size(file.path) == 2 * IdSpool::kSlotBytes);
  spool.erase(kSecond.id);
  spool.keep(kFirst);  // in the slot that is free
  CHECK(std::filesystem::file_size(file.path) == 2 * IdSpool::kSlotBytes);
}

TEST_CASE("id spool: of a damaged file the whole ids are found, and the rest is cut off") {
  const SpoolFile file;
  {
    IdSpool spool = file.open();
    for (const auto& owned : {kFirst, kSecond, kThird}) spool.keep(owned);
  }
  std::fstream raw(file.path, std::ios::in | std::ios::out | std::ios::binary);
  SECTION("a slot without an id") {
    raw.write("no tenant\n\xff", 11);
  }
  SECTION("a slot with characters that no id has") {
    raw.write("a nn/req", 8);
  }
  SECTION("a slot without an end") {
    raw.write(std::string(IdSpool::kSlotBytes, 'x').data(), 256);
  }
  raw.seekp(0, std::ios::end).write("eve/torn", 8).flush();
  CHECK((file.left() == OwnedIds{kSecond, kThird}));
  CHECK(std::filesystem::file_size(file.path) == 2 * IdSpool::kSlotBytes);
}

TEST_CASE("id spool: beyond its bound, and on a full disk, ids are counted as not kept") {
  const SpoolFile file;
  SECTION("bound") {
    IdSpool spool = file.open(2);
    for (const auto& owned : {kFirst, kSecond, kThird}) spool.keep(owned);
    CHECK(spool.not_kept() == 1);
    spool.erase(kFirst.id);
    spool.keep(kThird);
  }
  SECTION("full disk") {
    IdSpool spool = file.open();
    {
      const testing::FileSizeLimit limit(IdSpool::kSlotBytes + 9);
      for (const auto& owned : {kFirst, kSecond, kThird}) spool.keep(owned);
    }
    CHECK(spool.not_kept() == 2);
    spool.erase(kFirst.id);
    for (const auto& owned : {kThird, kSecond}) spool.keep(owned);
  }
  CHECK(file.left() == OwnedIds{kThird, kSecond});
}

TEST_CASE("id spool: a path that is not this user's own file is a typed error") {
  const SpoolFile file;
  SECTION("in use") {
    const IdSpool spool = file.open();
    CHECK(file.error() == Errc::SocketInUse);
  }
  SECTION("a symbolic link") {
    std::filesystem::create_symlink(file.directory.file("elsewhere"), file.path);
    CHECK(file.error() == Errc::PermissionDenied);
    CHECK_FALSE(std::filesystem::exists(file.directory.file("elsewhere")));
  }
  SECTION("a file with another name") {
    std::ofstream(file.directory.file("elsewhere")) << "text";
    std::filesystem::create_hard_link(file.directory.file("elsewhere"), file.path);
    CHECK(file.error() == Errc::PermissionDenied);
  }
  SECTION("a named pipe") {
    REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
    CHECK(file.error() == Errc::PermissionDenied);
  }
  SECTION("a directory") {
    std::filesystem::create_directory(file.path);
    CHECK(file.error() == Errc::SystemError);
  }
  SECTION("in a directory that is gone") {
    std::filesystem::remove_all(file.directory.path());
    CHECK(file.error() == Errc::FileNotFound);
  }
}

}  // namespace leasehold
