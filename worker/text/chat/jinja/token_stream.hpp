/// The tokens of a template, read by the parsers of expressions and statements.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/lexer.hpp"
#include "worker/text/chat/jinja/limits.hpp"

namespace leasehold::jinja {

class TokenStream {
 public:
  /// `tokens` ends with End, as from tokenize.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& following() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }

  Token take() {
    Token token = current();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }

  bool at_operator(std::string_view text) const { return current().is(TokenKind::Operator, text); }
  bool at_name(std::string_view text) const { return current().is(TokenKind::Name, text); }
  bool at(TokenKind kind) const { return current().kind == kind; }

  bool skip_operator(std::string_view text) { return skip_if(at_operator(text)); }
  bool skip_name(std::string_view text) { return skip_if(at_name(text)); }

  Result<void> expect_operator(std::string_view text) {
    if (skip_operator(text)) return {};
    return unexpected(fmt::format("'{}'", text));
  }
  Result<void> expect(TokenKind kind, std::string_view what) {
    if (skip_if(at(kind))) return {};
    return unexpected(what);
  }
  Result<std::string> name() {
    if (at(TokenKind::Name)) return take().text;
    return unexpected("a name");
  }

  std::unexpected<Error> unexpected(std::string_view wanted) const {
    return syntax_error(line(), fmt::format("expected {}, got {}", wanted, describe_current()));
  }

  /// Counts the nesting of the parsers.
  Nesting nest() { return Nesting(nesting_); }
  Result<void> check_nesting(std::uint32_t height = 0) const {
    if (nesting_ <= kMaxNesting && height <= kMaxNesting) return {};
    return syntax_error(line(), fmt::format("nests deeper than {} levels", kMaxNesting));
  }

 private:
  bool skip_if(bool wanted) {
    if (wanted) take();
    return wanted;
  }

  std::string describe_current() const {
    switch (current().kind) {
      case TokenKind::End:
        return "the end of the template";
      case TokenKind::BlockEnd:
        return "'%}'";
      case TokenKind::PrintEnd:
        return "'}}'";
      case TokenKind::TextLiteral:
        return fmt::format("the text '{}'", printable_excerpt(current().text));
      default:
        return fmt::format("'{}'", printable_excerpt(current().text));
    }
  }

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  std::uint32_t nesting_ = 0;
};

}  // namespace leasehold::jinja
