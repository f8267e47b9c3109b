/// The source tree as text, for rules that a compiler does not check.
#pragma once

#include <filesystem>
#include <functional>
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

std::string read_text(const std::filesystem::path& path);

/// The files that `is_wanted` accepts by their path relative to `root`, in the rooms and directly
/// in the root, ordered by path. Throws what std::filesystem throws.
Sources read_files(const std::filesystem::path& root,
                   const std::function<bool(const std::filesystem::path&)>& is_wanted);

/// Every C++ and CUDA file of the rooms under `root`, ordered by path. Throws what
/// std::filesystem throws.
Sources read_sources(const std::filesystem::path& root);

/// By its extension.
bool is_cpp(std::string_view path);

bool is_word_character(char c);

/// True for this room: its rules, lists and planted violations contain what they forbid.
bool is_tidy(std::string_view path);

}  // namespace leasehold::tidy
