/// Splits a template into tokens, with the whitespace control that chat templates expect:
/// `trim_blocks` and `lstrip_blocks` are on, and one newline at the end is dropped.
///
/// Source: Jinja 3.1, "Template Designer Documentation", sections Whitespace Control and Escaping;
/// Hugging Face "Templates for chat models" for the two settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace leasehold::jinja {

enum class TokenKind : std::uint8_t {
  Data,  ///< Text outside tags.
  BlockBegin,
  BlockEnd,
  PrintBegin,
  PrintEnd,
  Name,
  TextLiteral,  ///< Its escapes are resolved.
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;
  int line = 1;

  bool is(TokenKind wanted, std::string_view require_text) const {
    return kind == wanted && text == require_text;
  }
};

/// The last token has kind End. Errors: UnsupportedModel with the line.
Result<std::vector<Token>> tokenize(std::string_view source);

/// A syntax error in a template.
inline std::unexpected<Error> syntax_error(int line, std::string_view detail) {
  return fail(Errc::UnsupportedModel,
              "the chat template, line " + std::to_string(line) + ": " + std::string(detail));
}

}  // namespace leasehold::jinja
