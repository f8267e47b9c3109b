/// Which version of an adapter a request may run under.
#pragma once

#include "worker/schedule/request.hpp"

namespace leasehold {

/// Checks that the request may run under the loaded version: the tokens that one version computed
/// are not continued by another one, and a text is published under the version that the broker
/// names. Errors: UnknownAdapter.
Result<void> check_version(const RequestAdapter& wanted, const LoadedAdapter& loaded);

}  // namespace leasehold
