/// The text that `prefix publish` sends.
#pragma once

#include <string>

#include "common/result.hpp"

namespace leasehold::brokerctl {

/// Reads the text of `prefix publish`: a whole file, or standard input for "-". Errors: those of
/// common/machine/text_file.hpp; BadRequest for a text that is empty or not UTF-8.
Result<std::string> read_prefix_text(const std::string& file);

}  // namespace leasehold::brokerctl
