#include "worker/text/chat/jinja/interpreter.hpp"

#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/template.hpp"

namespace leasehold::jinja {

Result<MarkedText> Interpreter::run(const Body& body) {
  (void)TRY(execute(body));
  return std::move(output_);
}

Result<Flow> Interpreter::execute(const Body& body) {
  const Nesting nesting = runtime_.nest();
  TRY(runtime_.check_depth());
  for (const Statement& statement : body) {
    runtime_.set_line(statement.line);
    TRY(runtime_.charge(1));
    const Flow flow =
        TRY(std::visit([this](const auto& kind) { return perform(kind); }, statement.kind));
    if (flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Result<Flow> Interpreter::write(const MarkedText& text) {
  TRY(runtime_.charge_bytes(text.size()));
  if (output_.size() + text.size() > runtime_.limits().output_bytes) {
    return runtime_.too_long(
        fmt::format("the prompt grows beyond {} bytes", runtime_.limits().output_bytes));
  }
  output_.append(text);
  return Flow::Next;
}

Result<Flow> Interpreter::perform(const Print& print) {
  const Value value = TRY(expressions_.evaluate(*print.value));
  return write(TRY(to_text(runtime_, value)));
}

Result<Flow> Interpreter::perform(const If& choice) {
  for (const If::Branch& branch : choice.branches) {
    const bool taken =
        branch.condition == nullptr || TRY(expressions_.evaluate(*branch.condition)).is_truthy();
    if (taken) return execute(branch.body);
  }
  return Flow::Next;
}

Result<Value> Interpreter::loop_items(const For& loop) {
  const Value iterable = TRY(expressions_.evaluate(*loop.iterable));
  std::vector<Value> items = TRY(runtime_.elements(iterable));
  if (loop.filter == nullptr) return runtime_.list(std::move(items));
  std::vector<Value> chosen;
  for (Value& item : items) {
    const InnerScope inner(expressions_);
    TRY(assign(loop.target, item));
    if (TRY(expressions_.evaluate(*loop.filter)).is_truthy()) chosen.push_back(std::move(item));
  }
  return runtime_.list(std::move(chosen));
}

Result<Flow> Interpreter::perform(const For& loop) {
  const Value items = TRY(loop_items(loop));
  const ListRef& list = *items.get<ListRef>();
  const auto state = std::make_shared<Loop>(Loop{.items = list});
  // As in Jinja, `else` runs unless an iteration reached its end.
  bool has_finished_one = false;
  Flow flow = Flow::Next;
  for (std::size_t i = 0; i < list->items.size() && flow != Flow::Break; ++i) {
    state->index0 = i;
    flow = TRY(run_iteration(loop, state));
    has_finished_one |= flow == Flow::Next;
  }
  if (has_finished_one || loop.otherwise.empty()) return Flow::Next;
  const InnerScope inner(expressions_);
  return execute(loop.otherwise);
}

Result<Flow> Interpreter::run_iteration(const For& loop, const LoopRef& state) {
  TRY(runtime_.charge(4));
  const InnerScope inner(expressions_);
  define("loop", Value(state));
  TRY(assign(loop.target, state->items->items[state->index0]));
  return execute(loop.body);
}

Result<void> Interpreter::assign(const Target& target, Value value) {
  if (!target.attribute.empty()) {
    const Value object = TRY(expressions_.look_up(target.names.front()));
    const auto* space = object.get<NamespaceRef>();
    if (space == nullptr) {
      return runtime_.bad_request(fmt::format("'{}' is not a namespace; cannot set '{}'",
                                              target.names.front(), target.attribute));
    }
    (*space)->attributes[target.attribute] = std::move(value);
    return {};
  }
  if (target.names.size() == 1) {
    define(target.names.front(), std::move(value));
    return {};
  }
  const std::vector<Value> parts = TRY(runtime_.elements(value));
  if (parts.size() != target.names.size()) {
    return runtime_.bad_request(
        fmt::format("cannot unpack {} values into {}", parts.size(), target.names.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) define(target.names[i], parts[i]);
  return {};
}

Result<Flow> Interpreter::perform(const Set& set) {
  Value value = TRY(expressions_.evaluate(*set.value));
  TRY(assign(set.target, std::move(value)));
  return Flow::Next;
}

Result<Interpreter::Captured> Interpreter::capture(const Body& body) {
  MarkedText outside = std::exchange(output_, {});
  const Result<Flow> flow = execute(body);
  MarkedText inside = std::exchange(output_, std::move(outside));
  Captured captured{.flow = TRY(flow)};
  captured.text = TRY(runtime_.text(std::move(inside)));
  return captured;
}

Result<Value> Interpreter::filtered(const std::vector<FilterCall>& filters, Value value) {
  for (const FilterCall& filter : filters) {
    const Arguments arguments = TRY(expressions_.arguments_of(filter.arguments));
    value = TRY(apply_filter(runtime_, filter.name, value, arguments));
  }
  return value;
}

Result<Flow> Interpreter::perform(const CaptureBlock& block) {
  Captured captured;
  {
    const InnerScope inner(expressions_);
    captured = TRY(capture(block.body));
    if (captured.flow != Flow::Next) return captured.flow;
    captured.text = TRY(filtered(block.filters, std::move(captured.text)));
  }
  if (block.target.names.empty()) return write(TRY(to_text(runtime_, captured.text)));
  TRY(assign(block.target, std::move(captured.text)));
  return Flow::Next;
}

Result<Flow> Interpreter::perform(const ScopeBlock& block) {
  std::vector<Value> values;
  for (const auto& variable : block.variables)
    values.push_back(TRY(expressions_.evaluate(*variable.second)));
  const InnerScope inner(expressions_);
  for (std::size_t i = 0; i < values.size(); ++i)
    define(block.variables[i].first, std::move(values[i]));
  return execute(block.body);
}

Result<Flow> Interpreter::perform(const CallBlock& block) {
  const Value caller = TRY(callable_of(block.caller));
  const Value text = TRY(expressions_.call_with(std::get<Call>(block.call->kind), &caller));
  return write(TRY(to_text(runtime_, text)));
}

// ------------------------------------------------------------------------------------------ macros

Result<Flow> Interpreter::perform(const std::shared_ptr<const Macro>& macro) {
  define(macro->name, TRY(callable_of(macro)));
  return Flow::Next;
}

/// Holds the scope weakly, because the scope holds the macro.
Result<Value> Interpreter::callable_of(std::shared_ptr<const Macro> macro) {
  return runtime_.callable(
      Value(),
      [this, macro = std::move(macro),
       around = std::weak_ptr(expressions_.scope())](const Arguments& given) -> Result<Value> {
        const ScopeRef scope = around.lock();
        if (scope == nullptr) {
          return runtime_.unsupported(fmt::format(
              "the macro '{}' is called after the loop it was defined in", macro->name));
        }
        return call_macro(*macro, scope, given);
      });
}

Result<Value> Interpreter::call_macro(const Macro& macro, const ScopeRef& around,
                                      const Arguments& given) {
  const Nesting nesting = runtime_.nest();
  TRY(runtime_.check_depth());
  const InnerScope inner(expressions_, around);
  TRY(bind_parameters(macro, given));
  const int line_outside = runtime_.line();
  Result<Captured> captured = capture(macro.body);
  if (captured) runtime_.set_line(line_outside);
  return TRY(std::move(captured)).text;
}

Result<void> Interpreter::bind_parameters(const Macro& macro, const Arguments& given) {
  Parameters parameters(macro.name, given);
  for (const Parameter& parameter : macro.parameters) {
    Value value = Value::undefined(fmt::format("'{}' was not given", parameter.name));
    if (const Value* argument = parameters.given(parameter.name)) {
      value = *argument;
    } else if (parameter.fallback != nullptr) {
      value = TRY(expressions_.evaluate(*parameter.fallback));
    }
    define(parameter.name, std::move(value));
  }
  if (const Value* caller = parameters.named("caller")) define("caller", *caller);
  return parameters.done(runtime_);
}

// ---------------------------------------------------------------------------------------- Template

Result<Template> Template::parse(std::string_view source) {
  return Template(TRY(parse_template(source)));
}

Result<MarkedText> Template::render(const Variables& variables, std::int64_t now_unix_s,
                                    const Limits& limits) const {
  Interpreter interpreter(limits, now_unix_s);
  for (const auto& [name, value] : variables) interpreter.define(name, value);
  return interpreter.run(*body_);
}

}  // namespace leasehold::jinja
