#include "worker/kv/spill_store.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/temporary_directory.hpp"
#include "worker/kv/spill_thread.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kStoredBytes = 4096;
constexpr std::uint64_t kFileBytes = 64 << 10;

UniqueFd unnamed_file(std::uint64_t size_bytes = kFileBytes) {
  UniqueFd fd(::memfd_create("spill", MFD_CLOEXEC));
  REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0);
  return fd;
}

void check_refused(UniqueFd fd) {
  const auto adopted = SpillFile::adopt(std::move(fd), kFileBytes);
  REQUIRE_FALSE(adopted);
  CHECK(adopted.error().code == Errc::UntrustedSegment);
}

}  // namespace

TEST_CASE("spill file: only a nameless regular file of the lent size, open both ways, is used") {
  CHECK(SpillFile::adopt(unnamed_file(), kFileBytes));
  check_refused(unnamed_file(kFileBytes - 1));
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd other_end(ends[1]);
  check_refused(UniqueFd(ends[0]));
  check_refused(UniqueFd(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));

  const UniqueFd file = unnamed_file();
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  check_refused(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  check_refused(UniqueFd(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC)));

  const auto directory = TemporaryDirectory::create("spill").value();
  const std::string named = (directory.path() / "named").string();
  UniqueFd fd(::open(named.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::ftruncate(fd.get(), kFileBytes) == 0);
  check_refused(std::move(fd));
}

TEST_CASE("spill file: a file that was cut off is corrupt behind its end") {
  UniqueFd fd = unnamed_file();
  const SpillFile file = SpillFile::adopt(fd.duplicate().value(), kFileBytes).value();
  std::vector<std::byte> bytes(kStoredBytes, std::byte{7});
  REQUIRE(file.write(kStoredBytes, bytes));
  REQUIRE(::ftruncate(fd.get(), kStoredBytes + 10) == 0);
  const auto got = file.read(kStoredBytes, bytes);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Errc::FileCorrupt);
}

TEST_CASE("spill store: blocks return as they left, and staging is clear once they are gone") {
  const std::shared_ptr<SpillStore> store =
      SpillStore::create(SpillFile::adopt(unnamed_file(), kFileBytes).value(), kStoredBytes)
          .value();
  CHECK(store->slot_count() == kFileBytes / (kStoredBytes + LeaseSeal::kSealBytes));
  const auto seal = LeaseSeal::create({1, 1}, 0).value();
  SpillThread thread(store, [] {});
  const auto run = [&](SpillJob::Kind kind) {
    thread.post({.kind = kind,
                 .lease = {1, 1},
                 .block = {{1}, 0, true},
                 .slot = 2,
                 .buffer = 1,
                 .seal = seal});
    while (true) {
      const std::vector<SpillAnswer> answers = thread.take_answers();
      if (answers.empty()) {
        std::this_thread::yield();
        continue;
      }
      REQUIRE(answers.size() == 1);
      REQUIRE(answers[0].result);
      CHECK(answers[0].job.seal == nullptr);
      return;
    }
  };
  run(SpillJob::Kind::Write);
  CHECK(store->is_staging_clear());
  run(SpillJob::Kind::Read);
  run(SpillJob::Kind::Clear);
  CHECK(store->is_staging_clear());
}

TEST_CASE("spill store: a file without room for a block is refused") {
  const auto store = SpillStore::create(
      SpillFile::adopt(unnamed_file(kStoredBytes), kStoredBytes).value(), kStoredBytes);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == Errc::BadRequest);
}

}  // namespace leasehold
