#include "common/machine/confined.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace leasehold;

TEST_CASE("confined: results pass, and what is thrown is an error of one tenant") {
  CHECK(catch_request_errors([]() -> Result<int> { return 7; }).value() == 7);
  CHECK(catch_request_errors([]() -> Result<int> { return fail(Errc::BadRequest, "b"); })
            .error()
            .code == Errc::BadRequest);
  const auto no_memory = catch_request_errors([]() -> Result<int> { throw std::bad_alloc(); });
  CHECK(no_memory.error().code == Errc::OutOfMemory);
  CHECK(no_memory.error().scope == FailureScope::Tenant);
  const auto broken =
      catch_request_errors([]() -> Result<int> { throw std::length_error("too long"); });
  CHECK(broken.error().code == Errc::EngineDecodeFailed);
  CHECK(broken.error().scope == FailureScope::Tenant);
  CHECK(broken.error().detail == "the request failed: too long");
  const auto wrong = catch_request_errors(
      []() -> Result<int> { throw std::length_error("too long"); }, Errc::BadRequest);
  CHECK(wrong.error().code == Errc::BadRequest);
}
