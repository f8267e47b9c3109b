#include "tests/tidy/coroutine_rules.hpp"

#include <algorithm>
#include <span>

#include "tests/tidy/cpp_tokens.hpp"

namespace leasehold::tidy {
namespace {

using Tokens = std::span<const Token>;

constexpr std::string_view kAwait = "co_await";

bool has(Tokens tokens, std::string_view text) {
  return std::ranges::find(tokens, text, &Token::text) != tokens.end();
}

/// True for `&&` and `||`, whose characters are tokens of their own.
bool has_logical_operator(Tokens tokens) {
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if ((text == "&" || text == "|") && tokens[i - 1].text == text) return true;
  }
  return false;
}

/// What is between the parenthesis at the beginning and its counterpart.
Tokens in_parentheses(Tokens tokens) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "(") ++depth;
    if (tokens[i].text == ")" && --depth == 0) return tokens.first(i);
  }
  return tokens;
}

bool ends_statement(const Token& token) {
  return token.text == ";" || token.text == "{" || token.text == "}";
}

bool is_control(const Token& token) {
  return token.text == "if" || token.text == "while" || token.text == "for" ||
         token.text == "switch";
}

/// How many tokens the first statement has. The condition of an if or a loop ends one: what it
/// controls is another.
std::size_t statement_size(Tokens tokens) {
  if (tokens.size() > 1 && is_control(tokens[0]) && tokens[1].text == "(")
    return 1 + in_parentheses(tokens.subspan(1)).size();
  const auto ends = [](const Token& token) { return ends_statement(token) || is_control(token); };
  const auto end = std::ranges::find_if(tokens.subspan(1), ends);
  return static_cast<std::size_t>(end - tokens.subspan(1).begin()) + 1;
}

void check_loops(const SourceFile& file, Tokens tokens, Findings& findings) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].text != "while" || tokens[i + 1].text != "(") continue;
    const Tokens condition = in_parentheses(tokens.subspan(i + 1));
    if (has(condition, kAwait) && has_logical_operator(condition))
      findings.push_back({file.path, tokens[i].line, "co_await beside && or || in a condition"});
  }
}

void check_statements(const SourceFile& file, Tokens tokens, Findings& findings) {
  while (!tokens.empty()) {
    const Tokens statement = tokens.first(statement_size(tokens));
    if (has(statement, kAwait) && has(statement, "?"))
      findings.push_back({file.path, statement.front().line, "co_await and ?: in one statement"});
    tokens = tokens.subspan(statement.size());
  }
}

}  // namespace

Findings mistranslated_awaits(const Sources& sources) {
  Findings findings;
  for (const SourceFile& file : sources) {
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    if (!text.contains(kAwait)) continue;
    const std::vector<Token> tokens = tokens_of(text);
    check_loops(file, tokens, findings);
    check_statements(file, tokens, findings);
  }
  return findings;
}

}  // namespace leasehold::tidy
