/// Mistyped words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leasehold::cli {

/// How many letters must be added, removed, changed or swapped with their neighbour to get from one
/// word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The known word that is nearest, or nothing when none is near: at most a third of its letters
/// differ.
std::string nearest(std::string_view typed, std::span<const std::string> known);

}  // namespace leasehold::cli
