#include "worker/text/grammar/schema/json_schema.hpp"

#include "common/expects.hpp"
#include "worker/text/grammar/schema/schema_compiler.hpp"

namespace leasehold {

Result<Grammar> compile_json_schema(std::string_view text, SchemaMode mode, WorkBudget& work) {
  SchemaContext context = TRY(SchemaContext::parse(text, mode == SchemaMode::Strict, work));
  GrammarBuilder builder;
  SchemaCompiler compiler(context, builder);
  const RuleId root = TRY(compiler.read());
  Grammar grammar = TRY(builder.finish_reachable(root));
  grammar.unchecked = context.unchecked();
  return grammar;
}

Grammar json_object_grammar() {
  GrammarBuilder builder;
  const JsonRules json(builder);
  const RuleId root = builder.declare("json object");
  builder.define(root, {json["object"]});
  auto grammar = builder.finish(root);
  ensures(grammar.has_value(), "the built-in grammar compiles");
  return *std::move(grammar);
}

}  // namespace leasehold
