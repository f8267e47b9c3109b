#include "broker/memory/spill_space.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr uid_t kUser = 7;
constexpr uid_t kOther = 8;

struct Space {
  explicit Space(std::uint64_t capacity_bytes, std::uint32_t users = 1)
      : space(io, {.directory = std::make_shared<const SpillDirectory>(
                       SpillDirectory::open(directory.path()).value()),
                   .capacity_bytes = capacity_bytes,
                   .users = users}) {}

  /// Waits for the disk.
  Result<SpillSpace::File> lend(std::uint64_t worker, uid_t uid = kUser) {
    std::vector<Result<SpillSpace::File>> answers;
    space.lend({worker}, uid, [&](auto file) { answers.push_back(std::move(file)); });
    wait_for([&] { return !answers.empty(); });
    return std::move(answers.front());
  }
  template <class Holds>
  void wait_for(Holds holds) {
    io.restart();  // stopped once it had no work
    const auto work = boost::asio::make_work_guard(io);
    while (!holds()) io.run_one();
  }

  TemporaryDirectory directory = TemporaryDirectory::create("spill").value();
  boost::asio::io_context io;
  SpillSpace space;
};

Errc code_of(const Result<SpillSpace::File>& file) {
  REQUIRE_FALSE(file);
  return file.error().code;
}

std::int64_t size_of(const UniqueFd& fd) {
  struct stat status{};
  REQUIRE(::fstat(fd.get(), &status) == 0);
  return status.st_size;
}

}  // namespace

TEST_CASE("spill space: a worker gets half of what is left, until too little is left") {
  Space spill(7 * kMiB);
  CHECK(spill.lend(1).value().size_bytes == 3 * kMiB);
  CHECK(spill.lend(2).value().size_bytes == 2 * kMiB);
  CHECK(spill.lend(3).value().size_bytes == 1 * kMiB);
  CHECK(spill.space.lent_bytes() == 6 * kMiB);
  CHECK(code_of(spill.lend(4)) == Errc::PoolExhausted);
  CHECK(spill.space.lent_bytes() == 6 * kMiB);
}

TEST_CASE("spill space: the workers of one user leave the others their share") {
  Space spill(8 * kMiB, /*users=*/2);
  CHECK(spill.lend(1, kUser).value().size_bytes == 2 * kMiB);
  CHECK(spill.lend(2, kUser).value().size_bytes == 1 * kMiB);
  CHECK(code_of(spill.lend(3, kUser)) == Errc::PoolExhausted);
  CHECK(spill.lend(4, kOther).value().size_bytes == 2 * kMiB);
}

TEST_CASE("spill space: a worker that asks again gets the same file") {
  Space spill(8 * kMiB);
  const auto first = spill.lend(1).value();
  const auto again = spill.lend(1).value();
  CHECK(again.size_bytes == first.size_bytes);
  REQUIRE(::pwrite(first.fd.get(), "x", 1, 0) == 1);
  char byte = 0;
  REQUIRE(::pread(again.fd.get(), &byte, 1, 0) == 1);
  CHECK(byte == 'x');
  CHECK(spill.space.lent_bytes() == first.size_bytes);
}

TEST_CASE(
    "spill space: the space of a worker that exited returns, also when its file is open "
    "elsewhere") {
  Space spill(8 * kMiB);
  const auto lent = spill.lend(1).value();
  spill.space.forget({1});
  CHECK(spill.space.lent_bytes() == 0);
  CHECK(spill.lend(2).value().size_bytes == 4 * kMiB);  // made after the file was cut
  CHECK(size_of(lent.fd) == 0);
}

TEST_CASE("spill space: a worker that exits before its file is there keeps nothing") {
  Space spill(8 * kMiB);
  std::vector<Result<SpillSpace::File>> answers;
  spill.space.lend({1}, kUser, [&](auto file) { answers.push_back(std::move(file)); });
  std::vector<Result<SpillSpace::File>> second;
  spill.space.lend({1}, kUser, [&](auto file) { second.push_back(std::move(file)); });
  CHECK(code_of(second.at(0)) == Errc::BadRequest);
  spill.space.forget({1});
  CHECK(spill.space.lent_bytes() == 4 * kMiB);  // the disk may have taken it
  spill.wait_for([&] { return !answers.empty(); });
  CHECK(code_of(answers.at(0)) == Errc::ConnectionLost);
  CHECK(spill.space.lent_bytes() == 0);
  CHECK(spill.space.find({1}) == nullptr);
}

TEST_CASE("spill space: a file that cannot be created takes no space") {
  Space spill(std::uint64_t{1} << 50);
  CHECK(code_of(spill.lend(1)) == Errc::DiskFull);
  CHECK(spill.space.lent_bytes() == 0);
}

TEST_CASE("spill space: files of an earlier broker count, also without a directory") {
  Space earlier(8 * kMiB);
  auto file = earlier.lend(1).value();
  boost::asio::io_context io;
  SpillSpace space(io, {});
  REQUIRE(::ftruncate(file.fd.get(), std::int64_t{1} << 40) == 0);  // by its worker
  REQUIRE(space.restore({1}, kUser, std::move(file.fd)));
  CHECK(space.lent_bytes() == 4 * kMiB);
  CHECK(space.find({1}) != nullptr);
  CHECK_FALSE(space.restore({2}, kUser, UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC))));
  std::vector<Result<SpillSpace::File>> none;
  space.lend({3}, kUser, [&](auto answer) { none.push_back(std::move(answer)); });
  REQUIRE(none.at(0));
  CHECK_FALSE(none[0]->fd);
}

}  // namespace leasehold::testing
