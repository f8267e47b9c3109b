/// The prose of the tree: comments, strings, and Markdown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tidy/source_tree.hpp"

namespace leasehold::tidy {

/// A comment, paragraph, list item or table cell, its lines joined by spaces; or one string.
struct Passage {
  std::string path;
  std::size_t line = 0;  ///< Where it begins, from 1.
  std::string text;
};

using Prose = std::vector<Passage>;

/// Scripts, CMake lists and Markdown of the rooms and of the root, ordered by path. Test data and
/// fuzz corpora are left out. Throws what std::filesystem throws.
Sources read_texts(const std::filesystem::path& root);

/// Comments of C++ and of scripts, and Markdown outside code fences. Comment lines indented by two
/// spaces or more are diagrams or code and are left out.
Prose comments_of(const Sources& sources);

/// String literals of C++, those of one line joined; paths of includes are left out.
Prose strings_of(const Sources& sources);

bool is_markdown(const SourceFile& file);

}  // namespace leasehold::tidy
