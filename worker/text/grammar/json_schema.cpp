#include "worker/text/grammar/json_schema.hpp"

#include "common/expects.hpp"
#include "worker/text/grammar/schema_compiler.hpp"

namespace leasehold {

Result<CompiledSchema> compile_json_schema(std::string_view text, SchemaMode mode) {
  SchemaContext context = TRY(SchemaContext::parse(text, mode == SchemaMode::Strict));
  GrammarBuilder builder;
  SchemaCompiler compiler(context, builder);
  const RuleId root = TRY(compiler.read());
  auto grammar = builder.finish_reachable(root);
  if (!grammar) return std::unexpected(grammar.error());
  const std::set<std::string>& unchecked = context.unchecked();
  return CompiledSchema{*std::move(grammar), {unchecked.begin(), unchecked.end()}};
}

Result<Grammar> parse_json_schema(std::string_view text) {
  return TRY(compile_json_schema(text, SchemaMode::Strict)).grammar;
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
