#include "common/errc.hpp"

#include <catch2/catch.hpp>
#include <cctype>
#include <cerrno>
#include <set>

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

TEST_CASE("errc: every code has a unique name that parses to the code") {
  std::set<std::string_view> names;
  for (int i = 0; i < kErrcCount; ++i) {
    CAPTURE(i, name(code_at(i)));
    CHECK_FALSE(name(code_at(i)).empty());
    CHECK(names.insert(name(code_at(i))).second);
    CHECK(errc_from_name(name(code_at(i))) == code_at(i));
  }
}

TEST_CASE("errc: an unknown name has no code") {
  for (const std::string_view word : {"", "leasefenced", "LeaseFenced ", "Lease", "Unknown", "0"})
    CHECK(errc_from_name(word) == std::nullopt);
}

TEST_CASE("errc: exit codes are unique and differ from success, usage and a shell's codes") {
  std::set<int> codes;
  for (int i = 0; i < kErrcCount; ++i) {
    const int code = exit_code(code_at(i));
    CHECK(codes.insert(code).second);
    CHECK(code >= 10);
    CHECK(code < 126);  // shells use 126 and above
  }
}

TEST_CASE("errc: exit codes that scripts rely on are fixed") {
  CHECK(exit_code(Errc::BadRequest) == 10);
  CHECK(exit_code(Errc::PoolExhausted) == 23);
  CHECK(exit_code(Errc::LeaseRevoked) == 28);
  CHECK(exit_code(Errc::LeaseFenced) == 29);
  CHECK(exit_code(Errc::SystemError) == 51);
}

TEST_CASE("errc: a final error is not retryable, a shortage is") {
  for (const Errc final_code : {Errc::LeaseRevoked, Errc::LeaseFenced, Errc::MissingWeight,
                                Errc::StaleGeneration, Errc::UntrustedSegment, Errc::BadToken})
    CHECK_FALSE(is_retryable(final_code));
  for (const Errc passing :
       {Errc::PoolExhausted, Errc::QueueFull, Errc::Draining, Errc::StillWritable,
        Errc::ConnectionLost, Errc::WeightsLoading, Errc::EngineLeaseFenced})
    CHECK(is_retryable(passing));
}

TEST_CASE("errc: an engine's failure concerns every tenant, every other one only the caller") {
  const std::set<Errc> engine{Errc::EngineLeaseFenced,  Errc::MissingWeight, Errc::BrokerLost,
                              Errc::EngineDecodeFailed, Errc::NoModelLoaded, Errc::WeightsLoading,
                              Errc::DeviceFault};
  for (int i = 0; i < kErrcCount; ++i) {
    const Error error{code_at(i), ""};
    CAPTURE(name(error.code));
    CHECK((error.scope == FailureScope::Engine) == engine.contains(error.code));
    if (engine.contains(error.code)) CHECK_FALSE(is_lease_ended(error.code));
  }
  for (const FailureScope scope : {FailureScope::Tenant, FailureScope::Engine})
    CHECK(failure_scope_from_name(name(scope)) == scope);
  CHECK_FALSE(failure_scope_from_name(""));
}

TEST_CASE("result: TRY unwraps a value and passes an error on unchanged") {
  CHECK(doubled(21) == 42);
  const Error error{Errc::QueueFull, "64 requests wait"};
  CHECK(doubled(std::unexpected(error)).error() == error);
}

TEST_CASE("errc: a lack of file descriptors is reported as QueueFull, which may be retried") {
  for (const int error_number : {EMFILE, ENFILE}) {
    const Error error = fail_errno(Errc::SystemError, "socket", error_number).error();
    CHECK(error.code == Errc::QueueFull);
    CHECK(is_retryable(error.code));
    CHECK(error.detail.starts_with("socket: no file descriptor is free"));
    CHECK(fail_file("open x", error_number).error().code == Errc::QueueFull);
    CHECK(fail_errno(Errc::DiskFull, "write", error_number).error().code == Errc::DiskFull);
  }
}

TEST_CASE("result: a failed system call names the call and the reason") {
  const Error error = fail_errno(Errc::SystemError, "fchmod", EPERM).error();
  CHECK(error == Error{Errc::SystemError, "fchmod: Operation not permitted"});
}

TEST_CASE("errc: every error names a next step") {
  for (int i = 0; i < kErrcCount; ++i) {
    INFO(name(static_cast<Errc>(i)));
    CHECK(error_hint(static_cast<Errc>(i)).size() > 5);
  }
}

TEST_CASE("errc: the hint for a revoked lease suits an operator as well as its tenant") {
  CHECK(error_hint(Errc::LeaseRevoked).starts_with("its tenant acquires a new lease"));
}

TEST_CASE("errc: an exit code maps back to its error") {
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    CHECK(errc_from_exit_code(exit_code(code)) == code);
  }
  CHECK_FALSE(errc_from_exit_code(0));
  CHECK_FALSE(errc_from_exit_code(2));
  CHECK_FALSE(errc_from_exit_code(137));
}

TEST_CASE("errc: every code has a meaning of its own, in the form of a help line") {
  std::set<std::string_view> meanings;
  for (int i = 0; i < kErrcCount; ++i) {
    const std::string_view text = error_meaning(code_at(i));
    CAPTURE(name(code_at(i)), text);
    REQUIRE_FALSE(text.empty());
    CHECK(std::isupper(static_cast<unsigned char>(text.front())));
    CHECK(text.back() != '.');
    CHECK(meanings.insert(text).second);
  }
}
