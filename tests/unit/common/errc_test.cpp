#include "common/errc.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>
#include <string>

#include "common/error_hint.hpp"
#include "common/result.hpp"

using namespace leasehold;

namespace {

Errc code_at(int position) {
  return static_cast<Errc>(position);
}

Result<int> doubled(Result<int> input) {
  return 2 * TRY(std::move(input));
}

}  // namespace

TEST_CASE("errc: every code has a name of its own and the name leads back to it") {
  std::set<std::string_view> names;
  for (int i = 0; i < kErrcCount; ++i) {
    CAPTURE(i, name(code_at(i)));
    CHECK_FALSE(name(code_at(i)).empty());
    CHECK(names.insert(name(code_at(i))).second);
    CHECK(errc_from_name(name(code_at(i))) == code_at(i));
  }
}

TEST_CASE("errc: a word that is not in the list is no code") {
  for (const std::string_view word : {"", "leasefenced", "LeaseFenced ", "Lease", "Unknown", "0"})
    CHECK(errc_from_name(word) == std::nullopt);
}

TEST_CASE("errc: exit codes are unique and clear of success, usage and what a shell says") {
  std::set<int> codes;
  for (int i = 0; i < kErrcCount; ++i) {
    const int code = exit_code(code_at(i));
    CHECK(codes.insert(code).second);
    CHECK(code >= 10);
    CHECK(code < 126);  // from there on a shell speaks of commands and signals
  }
}

TEST_CASE("errc: exit codes that scripts rely on stay where they are") {
  CHECK(exit_code(Errc::BadRequest) == 10);
  CHECK(exit_code(Errc::PoolExhausted) == 23);
  CHECK(exit_code(Errc::LeaseRevoked) == 28);
  CHECK(exit_code(Errc::LeaseFenced) == 29);
  CHECK(exit_code(Errc::SystemError) == 51);
}

TEST_CASE("errc: what is final for a lease is not retryable, what is short today is") {
  for (const Errc final_code : {Errc::LeaseRevoked, Errc::LeaseFenced, Errc::EngineLeaseFenced,
                                Errc::StaleGeneration, Errc::UntrustedSegment, Errc::BadToken})
    CHECK_FALSE(is_retryable(final_code));
  for (const Errc passing : {Errc::PoolExhausted, Errc::QueueFull, Errc::Draining,
                             Errc::StillWritable, Errc::ConnectionLost, Errc::WeightsLoading})
    CHECK(is_retryable(passing));
}

TEST_CASE("result: TRY unwraps a value and hands an error on as it is") {
  CHECK(doubled(21) == 42);
  const Error error{Errc::QueueFull, "64 wait already"};
  CHECK(doubled(std::unexpected(error)).error() == error);
}

TEST_CASE("result: a failed system call says which and why") {
  const Error error = fail_errno(Errc::SystemError, "fchmod", EPERM).error();
  CHECK(error == Error{Errc::SystemError, "fchmod: Operation not permitted"});
}

TEST_CASE("errc: every error names a next step") {
  for (int i = 0; i < kErrcCount; ++i) {
    INFO(name(static_cast<Errc>(i)));
    CHECK(error_hint(static_cast<Errc>(i)).size() > 5);
  }
}

TEST_CASE("errc: an exit code leads back to its error") {
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    CHECK(errc_from_exit_code(exit_code(code)) == code);
  }
  CHECK_FALSE(errc_from_exit_code(0));
  CHECK_FALSE(errc_from_exit_code(2));
  CHECK_FALSE(errc_from_exit_code(137));
}
