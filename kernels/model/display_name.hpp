/// The name of a model for clients and logs.
#pragma once

#include <string>
#include <string_view>

#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// general.name as one printable line, or the architecture if the file has no such text.
std::string read_display_name(const GgufFile& file, std::string_view architecture);

}  // namespace leasehold
