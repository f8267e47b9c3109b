/// Memory as operators name it: "extent:5", "region:3"; a bare number is an extent.
#pragma once

#include <string>

#include "ipc/control/messages.hpp"

namespace leasehold::brokerctl {

/// Sets the extent or the region of `release`. Errors: BadRequest with the text.
Result<void> name_memory(const std::string& text, wire::QuarantineRelease& release);

}  // namespace leasehold::brokerctl
