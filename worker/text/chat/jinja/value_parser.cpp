// Values and what follows them: signs, attributes, subscripts, calls, filters, tests.
#include <algorithm>
#include <array>

#include "worker/text/chat/jinja/expression_parser.hpp"

namespace leasehold::jinja {

Result<ExpressionPtr> ExpressionParser::unary(bool with_filters) {
  ExpressionPtr value;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const Nesting nesting = tokens_.nest();
    TRY(tokens_.check_nesting());
    const Token sign = tokens_.take();
    ExpressionPtr operand = TRY(unary(false));
    const auto height = height_of(operand);
    value = TRY(node(Unary{sign.text, std::move(operand)}, sign.line, height));
  } else {
    value = TRY(primary());
  }
  value = TRY(postfix(std::move(value)));
  if (with_filters) return filtered(std::move(value));
  return value;
}

Result<ExpressionPtr> ExpressionParser::postfix(ExpressionPtr value) {
  while (true) {
    if (tokens_.at_operator(".")) {
      value = TRY(attribute(std::move(value)));
    } else if (tokens_.at_operator("[")) {
      value = TRY(subscript(std::move(value)));
    } else if (tokens_.at_operator("(")) {
      value = TRY(call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::filtered(ExpressionPtr value) {
  while (true) {
    if (tokens_.at_operator("|")) {
      value = TRY(filter(std::move(value)));
    } else if (tokens_.at_name("is")) {
      value = TRY(test(std::move(value)));
    } else if (tokens_.at_operator("(")) {
      value = TRY(call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::attribute(ExpressionPtr object) {
  const int line = tokens_.take().line;
  const auto height = height_of(object);
  if (tokens_.at(TokenKind::Integer)) {
    ExpressionPtr index = TRY(primary());
    return node(Subscript{std::move(object), std::move(index)}, line, height);
  }
  return node(Attribute{std::move(object), TRY(tokens_.name())}, line, height);
}

Result<ExpressionPtr> ExpressionParser::subscript(ExpressionPtr object) {
  const int line = tokens_.take().line;
  Slice slice{.object = std::move(object), .start = nullptr, .stop = nullptr, .step = nullptr};
  if (!tokens_.at_operator(":")) slice.start = TRY(tuple());
  const bool is_slice = tokens_.skip_operator(":");
  if (is_slice) {
    slice.stop = TRY(slice_bound());
    if (tokens_.skip_operator(":")) slice.step = TRY(slice_bound());
  }
  TRY(tokens_.expect_operator("]"));
  const auto height = std::max({height_of(slice.object), height_of(slice.start),
                                height_of(slice.stop), height_of(slice.step)});
  if (is_slice) return node(std::move(slice), line, height);
  return node(Subscript{std::move(slice.object), std::move(slice.start)}, line, height);
}

Result<ExpressionPtr> ExpressionParser::slice_bound() {
  if (tokens_.at_operator(":") || tokens_.at_operator("]")) return nullptr;
  return expression();
}

Result<ExpressionPtr> ExpressionParser::call(ExpressionPtr callee) {
  const int line = tokens_.line();
  ArgumentExpressions given = TRY(arguments());
  const auto height = std::max(height_of(callee), height_of(given));
  return node(Call{std::move(callee), std::move(given)}, line, height);
}

Result<void> ExpressionParser::argument(ArgumentExpressions& given) {
  if (tokens_.at_operator("*") || tokens_.at_operator("**")) {
    return syntax_error(tokens_.line(), "'*' arguments are not supported");
  }
  const bool is_named =
      tokens_.at(TokenKind::Name) && tokens_.following().is(TokenKind::Operator, "=");
  if (!is_named) {
    if (!given.named.empty()) return tokens_.unexpected("an argument with its name");
    given.positional.push_back(TRY(expression()));
    return {};
  }
  std::string name = tokens_.take().text;
  tokens_.take();
  given.named.emplace_back(std::move(name), TRY(expression()));
  return {};
}

Result<std::string> ExpressionParser::dotted_name() {
  std::string name = TRY(tokens_.name());
  while (tokens_.skip_operator(".")) name += "." + TRY(tokens_.name());
  return name;
}

Result<ExpressionPtr> ExpressionParser::filter(ExpressionPtr subject) {
  const int line = tokens_.take().line;
  FilterCall call = TRY(filter_name_and_arguments());
  const auto height = std::max(height_of(subject), height_of(call.arguments));
  call.subject = std::move(subject);
  return node(std::move(call), line, height);
}

Result<ExpressionPtr> ExpressionParser::test(ExpressionPtr subject) {
  const int line = tokens_.take().line;
  TestCall call{.subject = nullptr, .name = {}, .arguments = {}};
  call.negated = tokens_.skip_name("not");
  call.name = TRY(dotted_name());
  if (tokens_.at_operator("(")) {
    call.arguments = TRY(arguments());
  } else if (at_bare_argument()) {
    ExpressionPtr argument = TRY(primary());
    call.arguments.positional.push_back(TRY(postfix(std::move(argument))));
  }
  const auto height = std::max(height_of(subject), height_of(call.arguments));
  call.subject = std::move(subject);
  return node(std::move(call), line, height);
}

bool ExpressionParser::at_bare_argument() const {
  switch (tokens_.current().kind) {
    case TokenKind::Name: {
      constexpr std::array<std::string_view, 6> kWords = {"else", "or", "and", "if", "is", "not"};
      return std::ranges::count(kWords, tokens_.current().text) == 0 && !tokens_.at_name("in");
    }
    case TokenKind::TextLiteral:
    case TokenKind::Integer:
    case TokenKind::Float:
      return true;
    default:
      return tokens_.at_operator("[") || tokens_.at_operator("{");
  }
}

Result<ExpressionPtr> ExpressionParser::primary() {
  const Token& token = tokens_.current();
  switch (token.kind) {
    case TokenKind::Name:
      return name();
    case TokenKind::TextLiteral:
      return text();
    case TokenKind::Integer:
      return number<std::int64_t>();
    case TokenKind::Float:
      return number<double>();
    default:
      break;
  }
  if (token.text == "(" && token.kind == TokenKind::Operator) return parenthesized();
  if (token.text == "[" && token.kind == TokenKind::Operator) return list();
  if (token.text == "{" && token.kind == TokenKind::Operator) return dict();
  return tokens_.unexpected("an expression");
}

Result<ExpressionPtr> ExpressionParser::name() {
  const Token token = tokens_.take();
  if (token.text == "true" || token.text == "True") return literal(Value(true), token.line);
  if (token.text == "false" || token.text == "False") return literal(Value(false), token.line);
  if (token.text == "none" || token.text == "None") return literal(Value(None{}), token.line);
  return node(Name{token.text}, token.line, 0);
}

Result<ExpressionPtr> ExpressionParser::literal(Value value, int line) {
  return node(Literal{std::move(value)}, line, 0);
}

Result<ExpressionPtr> ExpressionParser::text() {
  const int line = tokens_.line();
  std::string whole;
  while (tokens_.at(TokenKind::TextLiteral)) whole += tokens_.take().text;
  return literal(Value::text(std::move(whole), TextOrigin::Template), line);
}

Result<ExpressionPtr> ExpressionParser::parenthesized() {
  const int line = tokens_.take().line;
  if (tokens_.skip_operator(")")) return list_node({}, true, line);
  ExpressionPtr value = TRY(tuple());
  TRY(tokens_.expect_operator(")"));
  return value;
}

Result<ExpressionPtr> ExpressionParser::list() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> items;
  while (!tokens_.skip_operator("]")) {
    items.push_back(TRY(expression()));
    if (!tokens_.at_operator("]")) TRY(tokens_.expect_operator(","));
  }
  return list_node(std::move(items), false, line);
}

Result<ExpressionPtr> ExpressionParser::dict() {
  const int line = tokens_.take().line;
  DictLiteral literal;
  std::uint32_t height = 0;
  while (!tokens_.skip_operator("}")) {
    ExpressionPtr key = TRY(expression());
    TRY(tokens_.expect_operator(":"));
    ExpressionPtr value = TRY(expression());
    height = std::max({height, height_of(key), height_of(value)});
    literal.entries.emplace_back(std::move(key), std::move(value));
    if (!tokens_.at_operator("}")) TRY(tokens_.expect_operator(","));
  }
  return node(std::move(literal), line, height);
}

}  // namespace leasehold::jinja
