/// Evaluates expressions in nested scopes.
///
/// Scopes are Jinja's: an `if` has no scope; each iteration of a `for` has its own; a macro sees
/// the scope of its definition, not of its call.
#pragma once

#include <memory>
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

/// Lifetime: the runtime, the trees and the names of variables outlive it. Threads: one. Errors of
/// all functions: those of Runtime.
class Evaluator {
 public:
  explicit Evaluator(Runtime& runtime) : runtime_(runtime), scope_(std::make_shared<Scope>()) {}
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Makes a scope within `parent` current for its lifetime.
  class InnerScope {
   public:
    InnerScope(Evaluator& evaluator, ScopeRef parent)
        : evaluator_(evaluator),
          saved_scope_(std::exchange(evaluator.scope_,
                                     std::make_shared<Scope>(Scope{std::move(parent), {}}))) {}
    explicit InnerScope(Evaluator& evaluator) : InnerScope(evaluator, evaluator.scope_) {}
    ~InnerScope() { evaluator_.scope_ = std::move(saved_scope_); }
    InnerScope(const InnerScope&) = delete;
    InnerScope& operator=(const InnerScope&) = delete;

   private:
    Evaluator& evaluator_;
    ScopeRef saved_scope_;
  };

  const ScopeRef& scope() const { return scope_; }
  /// Sets a variable of the current scope.
  void define(std::string_view name, Value value) { scope_->variables[name] = std::move(value); }
  /// The variable of the nearest scope, or else the global function with this name; undefined if
  /// there is neither.
  Result<Value> look_up(std::string_view name);

  Result<Value> evaluate(const Expression& expression);
  Result<Arguments> arguments_of(const ArgumentExpressions& given);
  /// `caller`: the body of a call block for the macro; null for other calls.
  Result<Value> call_with(const Call& call, const Value* caller);

 private:
  Result<Value> value_of(const Literal& literal) { return literal.value; }
  Result<Value> value_of(const Name& name) { return look_up(name.name); }
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

  Runtime& runtime_;
  ScopeRef scope_;
};

}  // namespace leasehold::jinja
