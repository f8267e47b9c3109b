/// Checks of options that a function parses.
#pragma once

#include <string>

namespace leasehold {

/// Returns a check for CLI11 that accepts what `parse`, which returns a Result, accepts.
auto checked(auto parse) {
  return [parse](const std::string& text) {
    const auto parsed = parse(text);
    return parsed ? std::string() : parsed.error().detail;
  };
}

}  // namespace leasehold
