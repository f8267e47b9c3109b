/// Writes an answer to a file.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::brokerctl {

/// Replaces the file as a whole, so that a failure leaves the old one. Errors: DiskFull,
/// PermissionDenied, FileNotFound for the directory, SystemError.
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace leasehold::brokerctl
