/// The tokens of a C++ file, as far as the rules about classes need them.
#pragma once

#include <string_view>
#include <vector>

namespace leasehold::tidy {

struct Token {
  std::string_view text;  ///< `""` for a literal text or character.
  std::size_t line = 0;   ///< From 1.
};

/// Names, numbers, `::`, `->` and single characters. Leaves out comments and preprocessor lines,
/// and keeps every branch of an #if. The tokens refer to `text`.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace leasehold::tidy
