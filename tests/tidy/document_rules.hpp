/// Rules for sentences, help texts and documents.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "tests/tidy/prose.hpp"
#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// A sentence of more than 40 words is two sentences.
Findings sentences_too_long(const Prose& prose);

/// Descriptions of options and subcommands start with a capital and have no full stop.
Findings help_lines_badly_written(const Sources& sources);

/// A README of more than 900 words takes a newcomer more than four minutes.
Findings readmes_too_long(const Sources& texts);

/// Relative links of Markdown name files that exist and headings that are there. `root` is where
/// the paths of the texts begin.
Findings broken_links(const Sources& texts, const std::filesystem::path& root);

}  // namespace leasehold::tidy
