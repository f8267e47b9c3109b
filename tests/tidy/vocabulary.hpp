/// The words the tree does not use any more, read from language.txt.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/prose.hpp"
#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

/// language.txt: a line each, fields separated by tabs; `#` begins a comment.
///
///   phrase      PCRE2 pattern, case-insensitive      what to say instead
///   identifier  a whole token                        the name that replaced it
class Vocabulary {
 public:
  /// Throws std::runtime_error for a line that is neither, and for a pattern that does not compile.
  explicit Vocabulary(std::string_view text);
  static Vocabulary read(const std::filesystem::path& path);
  ~Vocabulary();
  Vocabulary(Vocabulary&&) noexcept;

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
