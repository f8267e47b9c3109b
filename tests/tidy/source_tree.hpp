/// The source tree as text, for rules that a compiler does not check.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tidy {

struct SourceFile {
  std::string path;                ///< Relative to the root, with '/'.
  std::vector<std::string> lines;  ///< As written.
  std::vector<std::string> code;   ///< The same lines without comments.
};

using Sources = std::vector<SourceFile>;

SourceFile make_source(std::string path, std::string_view text);

/// Every C++ and CUDA file of the rooms under `root`, ordered by path. Throws what
/// std::filesystem throws.
Sources read_sources(const std::filesystem::path& root);

}  // namespace leasehold::tidy
