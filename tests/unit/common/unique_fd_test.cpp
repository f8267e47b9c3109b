#include "common/machine/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <type_traits>

using namespace leasehold;

static_assert(!std::is_copy_constructible_v<UniqueFd> && !std::is_copy_assignable_v<UniqueFd>);
static_assert(!std::is_convertible_v<int, UniqueFd>);

namespace {

int open_null() {
  return ::open("/dev/null", O_RDONLY);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("unique fd: it closes its descriptor at its end") {
  const int number = open_null();
  {
    const UniqueFd fd(number);
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("unique fd: moving transfers the descriptor and empties the source") {
  UniqueFd from(open_null());
  const int number = from.get();
  const UniqueFd to(std::move(from));
  CHECK(to.get() == number);
  CHECK(is_open(number));
  CHECK_FALSE(from);  // NOLINT(bugprone-use-after-move): tests that it is empty
}

TEST_CASE("unique fd: move assignment closes the descriptor owned before") {
  UniqueFd fd(open_null());
  const int before = fd.get();
  UniqueFd other(open_null());
  const int after = other.get();
  fd = std::move(other);
  CHECK_FALSE(is_open(before));
  CHECK(fd.get() == after);
  CHECK(is_open(after));
}

TEST_CASE("unique fd: assignment to itself keeps the descriptor open") {
  UniqueFd fd(open_null());
  UniqueFd& same = fd;
  fd = std::move(same);
  CHECK(is_open(fd.get()));
}

TEST_CASE("unique fd: release gives ownership up") {
  UniqueFd fd(open_null());
  const int number = fd.release();
  CHECK_FALSE(fd);
  CHECK(is_open(number));
  ::close(number);
}

TEST_CASE("unique fd: a duplicate is another number, close-on-exec, and outlives the first") {
  UniqueFd fd(open_null());
  const auto copy = fd.duplicate();
  REQUIRE(copy);
  CHECK(copy->get() != fd.get());
  CHECK((::fcntl(copy->get(), F_GETFD) & FD_CLOEXEC) != 0);
  fd.reset();
  CHECK(is_open(copy->get()));
}

TEST_CASE("unique fd: an empty one cannot be duplicated") {
  const auto copy = UniqueFd().duplicate();
  REQUIRE_FALSE(copy);
  CHECK(copy.error().code == Errc::SystemError);
}
