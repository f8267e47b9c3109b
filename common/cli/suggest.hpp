/// Suggests a known word for a mistyped one. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leasehold {

/// Edit distance with insertions, deletions, substitutions and swaps of neighbours, in letters.
/// Source: optimal string alignment distance (Damerau, Levenshtein).
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The nearest known word; empty when more than a third of its letters differ.
std::string nearest(std::string_view typed, std::span<const std::string> known);

}  // namespace leasehold
