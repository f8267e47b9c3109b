/// A digest of a submission: equal for two submissions of one request.
#pragma once

#include <array>
#include <cstddef>

#include "ipc/control/messages/tenant.hpp"

namespace leasehold {

using BodyDigest = std::array<std::byte, 32>;

/// BLAKE2b of the submission without `token`, `emitted`, `rebound_from` and `asked_at_unix_s`,
/// which may differ between two submissions of one request. Takes milliseconds for a long prompt.
/// Pure.
BodyDigest digest_of(const wire::RequestSubmit& submission);

}  // namespace leasehold
