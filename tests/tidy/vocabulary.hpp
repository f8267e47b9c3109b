/// Phrases that the tree does not use, read from language.txt.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/prose.hpp"
#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// A line of language.txt has a PCRE2 pattern, which ignores case, a tab, and the words to use
/// instead. `#` begins a comment.
class Vocabulary {
 public:
  /// Throws std::runtime_error for a line of another form, and for a pattern that does not compile.
  explicit Vocabulary(std::string_view text);
  ~Vocabulary();

  Findings banned_phrases(const Prose& prose) const;
  std::size_t size() const;

 private:
  struct Phrase;
  void add_phrase(const std::string& pattern, const std::string& instead);

  std::vector<Phrase> phrases_;
};

}  // namespace leasehold::tidy
