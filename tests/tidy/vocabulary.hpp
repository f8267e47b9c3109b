/// Words and names that the tree no longer uses, read from language.txt.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/prose.hpp"
#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// language.txt has one entry per line, with fields separated by tabs; `#` begins a comment.
///
///   phrase      PCRE2 pattern, case-insensitive      the words to use instead
///   identifier  a whole token                        the name that replaced it
class Vocabulary {
 public:
  /// Throws std::runtime_error for a line of neither kind, and for a pattern that does not compile.
  explicit Vocabulary(std::string_view text);
  ~Vocabulary();

  Findings banned_phrases(const Prose& prose) const;
  Findings gone_identifiers(const Sources& sources) const;
  std::size_t size() const;

 private:
  struct Phrase;
  void add_phrase(const std::string& pattern, const std::string& instead);

  std::vector<Phrase> phrases_;
  std::map<std::string, std::string, std::less<>> identifiers_;
};

}  // namespace leasehold::tidy
