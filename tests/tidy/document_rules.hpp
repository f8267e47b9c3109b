/// Rules for sentences, help texts and documents.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tests/tidy/prose.hpp"
#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// A sentence has at most 40 words.
Findings sentences_too_long(const Prose& prose);

/// Descriptions of options and subcommands start with a capital and have no full stop.
Findings help_lines_badly_written(const Sources& sources);

/// A README has at most 900 words, about four minutes of reading.
Findings readmes_too_long(const Sources& texts);

/// Relative links of Markdown name existing files and headings. Paths of the texts are relative to
/// `root`.
Findings broken_links(const Sources& texts, const std::filesystem::path& root);

/// Every row of a table whose last column is headed "test" names one that exists. In that column
/// `words with a space*` begin the name of a test case (without `*` they are the whole name), one
/// word in backticks is a path below `root` or `root`/tests or a test program, and a link is
/// enough. `sources_and_texts` has the documents, the test cases and the CMakeLists.
Findings missing_tests(const Sources& sources_and_texts, const std::filesystem::path& root);

}  // namespace leasehold::tidy
