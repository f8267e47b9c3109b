/// Runs the code of one request, so that an exception ends that request only.
#pragma once

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "common/result.hpp"

namespace leasehold {

/// Returns the Result of `work`. An exception becomes an error of tenant scope: OutOfMemory, or
/// `otherwise` with the text of the exception.
template <class Work>
std::invoke_result_t<Work> catch_request_errors(Work&& work,
                                                Errc otherwise = Errc::EngineDecodeFailed) try {
  return std::forward<Work>(work)();
} catch (const std::bad_alloc&) {
  return std::unexpected(Error{.code = Errc::OutOfMemory,
                               .detail = "the request needs more memory than there is; retry later",
                               .scope = FailureScope::Tenant});
} catch (const std::exception& thrown) {
  return std::unexpected(Error{.code = otherwise,
                               .detail = std::string("the request failed: ") + thrown.what(),
                               .scope = FailureScope::Tenant});
}

}  // namespace leasehold
