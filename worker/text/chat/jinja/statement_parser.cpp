// Statements between {% and %}, and the text around them.
#include <algorithm>
#include <span>

#include "worker/text/chat/jinja/expression_parser.hpp"

namespace leasehold::jinja {
namespace {

using Words = std::span<const std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Body> whole() { return body({}); }

 private:
  /// Parses up to a tag whose name is in `ends`, and leaves that name as the next token. If `ends`
  /// is empty, parses to the end of the template.
  Result<Body> body(Words ends) {
    const Nesting nesting = tokens_.nest();
    TRY(tokens_.check_nesting());
    Body body;
    while (true) {
      const int line = tokens_.line();
      if (tokens_.at(TokenKind::Data)) {
        body.push_back({Data{Value::text(tokens_.take().text, TextOrigin::Template)}, line});
      } else if (tokens_.at(TokenKind::PrintBegin)) {
        tokens_.take();
        body.push_back({Print{TRY(expressions_.tuple())}, line});
        TRY(tokens_.expect(TokenKind::PrintEnd, "'}}'"));
      } else if (tokens_.at(TokenKind::BlockBegin)) {
        tokens_.take();
        const auto is_here = [this](std::string_view word) { return tokens_.at_name(word); };
        if (std::ranges::any_of(ends, is_here)) return body;
        body.push_back({TRY(statement()), line});
      } else if (ends.empty()) {
        return body;
      } else {
        return tokens_.unexpected(fmt::format("'{}'", ends.back()));
      }
    }
  }

  Result<Body> body_until(std::string_view end) {
    TRY(end_of_tag());
    Body inner = TRY(body(Words(&end, 1)));
    tokens_.take();
    TRY(end_of_tag());
    return inner;
  }

  Result<void> end_of_tag() { return tokens_.expect(TokenKind::BlockEnd, "'%}'"); }

  Result<Statement::Kind> statement() {
    const Token tag = tokens_.current();
    const std::string name = TRY(tokens_.name());
    if (name == "if") return if_statement();
    if (name == "for") return for_statement();
    if (name == "set") return set_statement();
    if (name == "macro") return macro_statement();
    if (name == "call") return call_block();
    if (name == "filter") return filter_block();
    if (name == "generation") return generation_block();
    if (name == "with") return with_block();
    if (name == "break" || name == "continue") return loop_control(tag);
    return syntax_error(tag.line,
                        fmt::format("the tag '{}' is not supported", printable_excerpt(name)));
  }

  Result<Statement::Kind> if_statement() {
    static constexpr std::string_view kEnds[] = {"elif", "else", "endif"};
    If statement;
    ExpressionPtr condition = TRY(expressions_.tuple());
    while (true) {
      const bool is_else = condition == nullptr;
      TRY(end_of_tag());
      Body inner = TRY(body(is_else ? Words(kEnds).last(1) : Words(kEnds)));
      statement.branches.push_back({std::move(condition), std::move(inner)});
      condition = nullptr;
      const std::string end = tokens_.take().text;
      if (end == "endif") break;
      if (end == "elif") condition = TRY(expressions_.tuple());
    }
    TRY(end_of_tag());
    return statement;
  }

  Result<Statement::Kind> for_statement() {
    static constexpr std::string_view kEnds[] = {"else", "endfor"};
    For loop;
    loop.target = TRY(target());
    if (!tokens_.skip_name("in")) return tokens_.unexpected("'in'");
    loop.iterable = TRY(expressions_.tuple(ExpressionForm::Plain));
    if (tokens_.skip_name("if")) loop.filter = TRY(expressions_.expression());
    if (tokens_.at_name("recursive")) {
      return syntax_error(tokens_.line(), "recursive loops are not supported");
    }
    TRY(end_of_tag());
    ++loops_;
    loop.body = TRY(body(kEnds));
    --loops_;
    if (tokens_.take().text == "else") {
      loop.otherwise = TRY(body_until(kEnds[1]));
      return loop;
    }
    TRY(end_of_tag());
    return loop;
  }

  /// Parses `name`, `name, name`, `(name, name)` or `name.attribute`.
  Result<Target> target() {
    Target target;
    const bool in_brackets = tokens_.skip_operator("(");
    target.names.push_back(TRY(tokens_.name()));
    if (tokens_.skip_operator(".")) {
      target.attribute = TRY(tokens_.name());
      return target;
    }
    while (tokens_.skip_operator(",")) {
      if (tokens_.at(TokenKind::Name)) target.names.push_back(TRY(tokens_.name()));
    }
    if (in_brackets) TRY(tokens_.expect_operator(")"));
    return target;
  }

  Result<Statement::Kind> set_statement() {
    Target where = TRY(target());
    if (tokens_.skip_operator("=")) {
      ExpressionPtr value = TRY(expressions_.tuple());
      TRY(end_of_tag());
      return Set{.target = std::move(where), .value = std::move(value)};
    }
    CaptureBlock block{.target = std::move(where), .filters = {}, .body = {}};
    if (tokens_.skip_operator("|")) block.filters = TRY(expressions_.filters());
    block.body = TRY(body_until("endset"));
    return block;
  }

  Result<std::vector<Parameter>> parameters() {
    std::vector<Parameter> list;
    TRY(tokens_.expect_operator("("));
    while (!tokens_.skip_operator(")")) {
      Parameter parameter{.name = TRY(tokens_.name()), .fallback = nullptr};
      if (tokens_.skip_operator("=")) parameter.fallback = TRY(expressions_.expression());
      list.push_back(std::move(parameter));
      if (!tokens_.at_operator(")")) TRY(tokens_.expect_operator(","));
    }
    return list;
  }

  /// Parses a body in which `break` cannot reach a loop outside.
  Result<Body> parse_macro_body(std::string_view end) {
    const int loops_outside = std::exchange(loops_, 0);
    Body inner = TRY(body_until(end));
    loops_ = loops_outside;
    return inner;
  }

  Result<Statement::Kind> macro_statement() {
    Macro macro;
    macro.name = TRY(tokens_.name());
    macro.parameters = TRY(parameters());
    macro.body = TRY(parse_macro_body("endmacro"));
    return std::make_shared<const Macro>(std::move(macro));
  }

  Result<Statement::Kind> call_block() {
    Macro caller{.name = "caller", .parameters = {}, .body = {}};
    if (tokens_.at_operator("(")) caller.parameters = TRY(parameters());
    const int line = tokens_.line();
    ExpressionPtr call = TRY(expressions_.expression());
    if (!std::holds_alternative<Call>(call->kind)) {
      return syntax_error(line, "'call' needs a call of a macro");
    }
    caller.body = TRY(parse_macro_body("endcall"));
    return CallBlock{std::move(call), std::make_shared<const Macro>(std::move(caller))};
  }

  Result<Statement::Kind> filter_block() {
    CaptureBlock block;
    block.filters = TRY(expressions_.filters());
    block.body = TRY(body_until("endfilter"));
    return block;
  }

  /// Training uses the block to mark the assistant's text. In rendering it is only a scope.
  Result<Statement::Kind> generation_block() {
    ScopeBlock block;
    block.body = TRY(parse_macro_body("endgeneration"));
    return block;
  }

  Result<Statement::Kind> with_block() {
    ScopeBlock block;
    while (!tokens_.at(TokenKind::BlockEnd)) {
      std::string name = TRY(tokens_.name());
      TRY(tokens_.expect_operator("="));
      block.variables.emplace_back(std::move(name), TRY(expressions_.expression()));
      if (!tokens_.at(TokenKind::BlockEnd)) TRY(tokens_.expect_operator(","));
    }
    block.body = TRY(body_until("endwith"));
    return block;
  }

  Result<Statement::Kind> loop_control(const Token& tag) {
    if (loops_ == 0) return syntax_error(tag.line, fmt::format("'{}' outside a loop", tag.text));
    TRY(end_of_tag());
    return tag.text == "break" ? Flow::Break : Flow::Continue;
  }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  int loops_ = 0;
};

}  // namespace

Result<Body> parse_template(std::string_view source) {
  return StatementParser(TRY(tokenize(source))).whole();
}

}  // namespace leasehold::jinja
