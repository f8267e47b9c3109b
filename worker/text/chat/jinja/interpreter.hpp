/// One rendering of a template: executes its statements and collects the output.
///
/// Lifetime: the tree outlives the interpreter. Threads: one.
#pragma once

#include "worker/text/chat/jinja/evaluator.hpp"

namespace leasehold::jinja {

class Interpreter {
 public:
  Interpreter(const Limits& limits, std::int64_t now_unix_s)
      : runtime_(limits, now_unix_s), expressions_(runtime_) {}

  /// `name` outlives the interpreter.
  void define(std::string_view name, Value value) { expressions_.define(name, std::move(value)); }

  Result<MarkedText> run(const Body& body);

 private:
  using InnerScope = Evaluator::InnerScope;

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
  Evaluator expressions_;
  MarkedText output_;
};

}  // namespace leasehold::jinja
