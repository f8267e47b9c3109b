/// The prose of the tree: comments, strings, and Markdown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tidy/source_tree.hpp"

namespace leasehold::tidy {

/// A comment, paragraph, list item or table cell with its lines joined by spaces; or one string.
struct Passage {
  std::string path;
  std::size_t line = 0;  ///< Its first line, from 1.
  std::string text;
};

using Prose = std::vector<Passage>;

/// Scripts, CMake lists and Markdown of the rooms and of the root, ordered by path, without test
/// data and fuzz corpora. Throws what std::filesystem throws.
Sources read_texts(const std::filesystem::path& root);

/// Comments of C++ and of scripts, and Markdown outside code fences. Skips comment lines indented
/// by two spaces or more, which are diagrams or code.
Prose comments_of(const Sources& sources);

/// String literals of C++ without paths of includes. Joins the literals of one line.
Prose strings_of(const Sources& sources);

bool is_markdown(const SourceFile& file);

}  // namespace leasehold::tidy
