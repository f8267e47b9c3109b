/// The version that every program prints for --version.
#pragma once

#include <string_view>

namespace leasehold {

/// "0.1.0", the project's version in the top CMakeLists.txt.
std::string_view version();

}  // namespace leasehold
