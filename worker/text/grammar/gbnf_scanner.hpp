/// Scans the text of a grammar: blanks, names, characters, positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/text/grammar/grammar_builder.hpp"

namespace leasehold {

/// Errors: BadRequest with the position of the first byte that is not UTF-8.
Result<void> check_utf8(std::string_view text);

/// Precondition: the text is UTF-8. Lifetime: the text outlives the scanner.
class GbnfScanner {
 public:
  explicit GbnfScanner(std::string_view text) : text_(text) {}

  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  bool at_newline() const { return starts_with('\n') || starts_with("\r\n"); }
  bool starts_with(char c) const { return !at_end() && text_[at_] == c; }
  bool starts_with(std::string_view what) const { return rest().starts_with(what); }

  /// Skips the text if it comes next; returns whether it did.
  bool take(std::string_view what);
  /// Takes letters, digits, '-' and '_'; there may be none.
  std::string_view take_name();
  /// Takes one character or one escape. Precondition: the scanner is not at the end.
  Result<std::uint32_t> take_character();
  /// Takes the rest of a repetition after its '{', including the '}'.
  Result<Repetition> take_repetition();

  void skip_blanks();
  /// Skips blanks and comments, and newlines if `newlines`.
  void skip(bool newlines);

  std::unexpected<Error> error(const std::string& what) const { return error_at(at_, what); }
  /// "grammar, line 2 column 5: …"; columns count characters.
  std::unexpected<Error> error_at(std::size_t position, const std::string& what) const;

 private:
  std::string_view rest() const { return text_.substr(at_); }
  Result<std::uint32_t> take_escape();
  Result<std::uint32_t> take_number();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace leasehold
