#include "worker/text/grammar/compile.hpp"

#include <utility>

#include "worker/text/grammar/gbnf.hpp"
#include "worker/text/grammar/regex.hpp"
#include "worker/text/grammar/schema/json_schema.hpp"

namespace leasehold {
namespace {

using CompiledGrammar = Result<std::shared_ptr<const Grammar>>;

CompiledGrammar compiled_schema(std::string_view text, SchemaMode mode, WorkBudget& work) {
  return std::make_shared<const Grammar>(TRY(compile_json_schema(text, mode, work)));
}

}  // namespace

CompiledGrammar compile_grammar(const GrammarSource& source, WorkBudget& work) {
  switch (source.kind) {
    case GrammarKind::None:
      return nullptr;
    case GrammarKind::Gbnf:
      return std::make_shared<const Grammar>(TRY(parse_gbnf(source.text)));
    case GrammarKind::JsonObject:
      return std::make_shared<const Grammar>(json_object_grammar());
    case GrammarKind::JsonSchema:
      return compiled_schema(source.text, SchemaMode::Strict, work);
    case GrammarKind::LenientJsonSchema:
      return compiled_schema(source.text, SchemaMode::Lenient, work);
    case GrammarKind::Regex:
      return std::make_shared<const Grammar>(TRY(compile_regex(source.text, work)));
  }
  std::unreachable();
}

CompiledGrammar compile_grammar(const GrammarSource& source) {
  WorkBudget work;
  return compile_grammar(source, work);
}

}  // namespace leasehold
