#include "worker/text/chat/jinja/evaluator.hpp"

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/operators.hpp"

namespace leasehold::jinja {

Result<Value> Evaluator::evaluate(const Expression& expression) {
  const Nesting nesting = runtime_.nest();
  runtime_.set_line(expression.line);
  TRY(runtime_.check_depth());
  TRY(runtime_.charge(1));
  return std::visit([this](const auto& kind) { return value_of(kind); }, expression.kind);
}

Result<Value> Evaluator::optional_value(const ExpressionPtr& expression) {
  if (expression == nullptr) return Value(None{});
  return evaluate(*expression);
}

Result<Value> Evaluator::look_up(std::string_view name) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    TRY(runtime_.charge(1));
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return found->second;
  }
  return global_function(runtime_, name);
}

Result<Value> Evaluator::value_of(const ListLiteral& literal) {
  std::vector<Value> items;
  for (const ExpressionPtr& item : literal.items) items.push_back(TRY(evaluate(*item)));
  return runtime_.list(std::move(items), literal.is_tuple);
}

Result<Value> Evaluator::value_of(const DictLiteral& literal) {
  std::vector<Dict::Entry> entries;
  for (const auto& [key_expression, value_expression] : literal.entries) {
    const Value key = TRY(evaluate(*key_expression));
    Value value = TRY(evaluate(*value_expression));
    Value* same = nullptr;
    for (auto& entry : entries)
      if (TRY(are_equal(runtime_, entry.first, key))) same = &entry.second;
    if (same != nullptr) {
      *same = std::move(value);
    } else {
      entries.emplace_back(key, std::move(value));
    }
  }
  return runtime_.dict(std::move(entries));
}

Result<Value> Evaluator::value_of(const Attribute& attribute) {
  return attribute_of(runtime_, TRY(evaluate(*attribute.object)), attribute.name);
}

Result<Value> Evaluator::value_of(const Subscript& subscript) {
  const Value object = TRY(evaluate(*subscript.object));
  return element_of(runtime_, object, TRY(evaluate(*subscript.index)));
}

Result<Value> Evaluator::value_of(const Slice& slice_node) {
  const Value object = TRY(evaluate(*slice_node.object));
  SliceBounds bounds;
  bounds.start = TRY(optional_value(slice_node.start));
  bounds.stop = TRY(optional_value(slice_node.stop));
  bounds.step = TRY(optional_value(slice_node.step));
  return slice(runtime_, object, bounds);
}

Result<Arguments> Evaluator::arguments_of(const ArgumentExpressions& given) {
  Arguments arguments;
  for (const ExpressionPtr& argument : given.positional)
    arguments.positional.push_back(TRY(evaluate(*argument)));
  for (const auto& [name, argument] : given.named)
    arguments.named.emplace_back(name, TRY(evaluate(*argument)));
  return arguments;
}

Result<Value> Evaluator::call_with(const Call& call, const Value* caller) {
  const Value callee = TRY(evaluate(*call.callee));
  const int line = call.callee->line;
  Arguments arguments = TRY(arguments_of(call.arguments));
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  runtime_.set_line(line);
  if (const auto* callable = callee.get<CallableRef>()) return (*callable)->call(arguments);
  if (const auto* attribute = std::get_if<Attribute>(&call.callee->kind)) {
    return runtime_.unsupported(
        fmt::format("the method '{}' is not supported", printable_excerpt(attribute->name)));
  }
  const auto* name = std::get_if<Name>(&call.callee->kind);
  if (name != nullptr && callee.is_undefined()) {
    return runtime_.unsupported(
        fmt::format("the function '{}' is not supported", printable_excerpt(name->name)));
  }
  return runtime_.bad_request(fmt::format("'{}' cannot be called", callee.type_name()));
}

Result<Value> Evaluator::value_of(const FilterCall& filter) {
  const Value subject = TRY(evaluate(*filter.subject));
  const Arguments arguments = TRY(arguments_of(filter.arguments));
  return apply_filter(runtime_, filter.name, subject, arguments);
}

Result<Value> Evaluator::value_of(const TestCall& test) {
  const Value subject = TRY(evaluate(*test.subject));
  const Arguments arguments = TRY(arguments_of(test.arguments));
  return Value(TRY(apply_test(runtime_, test.name, subject, arguments)) != test.negated);
}

Result<Value> Evaluator::value_of(const Unary& unary) {
  const Value operand = TRY(evaluate(*unary.operand));
  if (unary.operation == "not") return Value(!operand.is_truthy());
  return apply_sign(runtime_, unary.operation, operand);
}

Result<Value> Evaluator::value_of(const Binary& binary) {
  const Value left = TRY(evaluate(*binary.left));
  return arithmetic(runtime_, binary.operation, left, TRY(evaluate(*binary.right)));
}

Result<Value> Evaluator::value_of(const Concat& concat) {
  MarkedText text;
  for (const ExpressionPtr& part : concat.parts) {
    const Value value = TRY(evaluate(*part));
    text.append(TRY(to_text(runtime_, value)));
  }
  return runtime_.text(std::move(text));
}

Result<Value> Evaluator::value_of(const Comparison& comparison) {
  Value left = TRY(evaluate(*comparison.first));
  for (const auto& [operation, expression] : comparison.rest) {
    Value right = TRY(evaluate(*expression));
    if (!TRY(compare(runtime_, operation, left, right))) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Evaluator::value_of(const Logical& logical) {
  Value left = TRY(evaluate(*logical.left));
  if (left.is_truthy() != logical.is_and) return left;
  return evaluate(*logical.right);
}

Result<Value> Evaluator::value_of(const Conditional& conditional) {
  if (TRY(evaluate(*conditional.condition)).is_truthy()) return evaluate(*conditional.then);
  if (conditional.otherwise != nullptr) return evaluate(*conditional.otherwise);
  return Value::undefined("an inline if without else was false");
}

}  // namespace leasehold::jinja
