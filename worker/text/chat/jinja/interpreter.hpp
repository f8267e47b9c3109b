/// One rendering of a template: evaluates its tree and collects the output.
///
/// Expressions are in evaluation.cpp, statements in execution.cpp.
/// Scopes are Jinja's: an `if` has no scope; each iteration of a `for` has its own; a macro sees
/// the scope of its definition, not of its call. Lifetime: the tree outlives the interpreter.
/// Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "worker/text/chat/jinja/runtime.hpp"
#include "worker/text/chat/jinja/syntax.hpp"

namespace leasehold::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::unordered_map<std::string_view, Value> variables;
};
using ScopeRef = std::shared_ptr<Scope>;

class Interpreter {
 public:
  Interpreter(const Limits& limits, std::int64_t now_unix_s)
      : runtime_(limits, now_unix_s), scope_(std::make_shared<Scope>()) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// `name` outlives the interpreter.
  void define(std::string_view name, Value value) { scope_->variables[name] = std::move(value); }

  Result<MarkedText> run(const Body& body);

 private:
  class InnerScope;

  // Expressions.
  Result<Value> evaluate(const Expression& expression);
  Result<Value> value_of(const Literal& literal) { return literal.value; }
  Result<Value> value_of(const Name& name);
  Result<Value> value_of(const ListLiteral& literal);
  Result<Value> value_of(const DictLiteral& literal);
  Result<Value> value_of(const Attribute& attribute);
  Result<Value> value_of(const Subscript& subscript);
  Result<Value> value_of(const Slice& slice);
  Result<Value> value_of(const Call& call) { return call_with(call, nullptr); }
  Result<Value> value_of(const FilterCall& filter);
  Result<Value> value_of(const TestCall& test);
  Result<Value> value_of(const Unary& unary);
  Result<Value> value_of(const Binary& binary);
  Result<Value> value_of(const Concat& concat);
  Result<Value> value_of(const Comparison& comparison);
  Result<Value> value_of(const Logical& logical);
  Result<Value> value_of(const Conditional& conditional);
  Result<Value> optional_value(const ExpressionPtr& expression);
  Result<Arguments> arguments_of(const ArgumentExpressions& given);
  /// `caller`: the body of a call block for the macro; null for other calls.
  Result<Value> call_with(const Call& call, const Value* caller);

  // Statements.
  Result<Flow> execute(const Body& body);
  Result<Flow> perform(const Data& data) { return write(*data.text.as_marked_text()); }
  Result<Flow> perform(const Print& print);
  Result<Flow> perform(const If& choice);
  Result<Flow> perform(const For& loop);
  Result<Flow> perform(const Set& set);
  Result<Flow> perform(const CaptureBlock& block);
  Result<Flow> perform(const std::shared_ptr<const Macro>& macro);
  Result<Flow> perform(const CallBlock& block);
  Result<Flow> perform(const ScopeBlock& block);
  Result<Flow> perform(const Flow& flow) { return flow; }

  Result<void> check_depth() const;
  Result<Flow> write(const MarkedText& text);
  Result<Value> loop_items(const For& loop);
  Result<Flow> run_iteration(const For& loop, const LoopRef& state);
  Result<void> assign(const Target& target, Value value);
  struct Captured {
    Value text;
    Flow flow = Flow::Next;
  };
  Result<Captured> capture(const Body& body);
  Result<Value> filtered(const std::vector<FilterCall>& filters, Value value);
  Result<Value> callable_of(std::shared_ptr<const Macro> macro);
  Result<Value> call_macro(const Macro& macro, const ScopeRef& around, const Arguments& given);
  Result<void> bind_parameters(const Macro& macro, const Arguments& given);

  Runtime runtime_;
  ScopeRef scope_;
  MarkedText output_;
  std::uint32_t depth_ = 0;  // nesting depth of the evaluation
};

/// Makes a scope within `parent` current for its lifetime.
class Interpreter::InnerScope {
 public:
  InnerScope(Interpreter& interpreter, ScopeRef parent)
      : interpreter_(interpreter),
        saved_scope_(std::exchange(interpreter.scope_,
                                   std::make_shared<Scope>(Scope{std::move(parent), {}}))) {}
  explicit InnerScope(Interpreter& interpreter) : InnerScope(interpreter, interpreter.scope_) {}
  ~InnerScope() { interpreter_.scope_ = std::move(saved_scope_); }
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Interpreter& interpreter_;
  ScopeRef saved_scope_;
};

}  // namespace leasehold::jinja
