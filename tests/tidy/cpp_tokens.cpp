#include "tests/tidy/cpp_tokens.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "tests/tidy/source_tree.hpp"

namespace leasehold::tidy {
namespace {

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_one();
    return std::move(tokens_);
  }

 private:
  void read_one() {
    const char c = text_[at_];
    if (std::isspace(static_cast<unsigned char>(c))) {
      is_line_start_ = is_line_start_ || c == '\n';
      skip_to(at_ + 1);
      return;
    }
    const bool starts_line = std::exchange(is_line_start_, false);
    if (follows("//"))
      skip_to(text_.find('\n', at_));
    else if (follows("/*"))
      skip_past("*/", at_ + 2);
    else if (c == '#' && starts_line)
      skip_directive();
    else if (c == '"' || c == '\'')
      read_literal(c);
    else if (is_word_character(c))
      read_word();
    else
      add(follows("::") || follows("->") ? 2 : 1);
  }

  bool follows(std::string_view text) const { return text_.substr(at_).starts_with(text); }

  void skip_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<std::size_t>(std::ranges::count(text_.substr(at_, end - at_), '\n'));
    at_ = end;
  }

  void skip_past(std::string_view closing, std::size_t from) {
    const auto found = text_.find(closing, from);
    skip_to(found == std::string_view::npos ? found : found + closing.size());
  }

  void skip_directive() {
    do skip_to(text_.find('\n', at_ + 1));
    while (at_ < text_.size() && text_[at_ - 1] == '\\');
  }

  void add(std::size_t size) {
    tokens_.push_back({text_.substr(at_, size), line_});
    at_ += size;
  }

  void read_literal(char quote) {
    tokens_.push_back({R"("")", line_});
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    skip_to(end + 1);
  }

  /// A number may contain ' and . between its digits. R before a quote starts a raw string.
  void read_word() {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text_[at_]));
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_word_character(text_[end]) ||
            (is_number && (text_[end] == '\'' || text_[end] == '.') && end + 1 < text_.size() &&
             std::isalnum(static_cast<unsigned char>(text_[end + 1])))))
      ++end;
    if (text_[end - 1] != 'R' || end == text_.size() || text_[end] != '"') {
      add(end - at_);
      return;
    }
    tokens_.push_back({R"("")", line_});
    const auto open = text_.find('(', end);
    const std::string closing = ")" + std::string(text_.substr(end + 1, open - end - 1)) + "\"";
    skip_past(closing, end);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool is_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  return Tokenizer(text).run();
}

}  // namespace leasehold::tidy
