/// The layers of the tree: which components and folders a file may include.
#pragma once

#include <string_view>

namespace leasehold::tidy {

/// True if the file `path` may include `included`; both are relative to the root.
bool may_include(std::string_view path, std::string_view included);

}  // namespace leasehold::tidy
