#include "worker/text/grammar/compile.hpp"

#include <utility>

#include "worker/text/grammar/gbnf.hpp"
#include "worker/text/grammar/regex.hpp"
#include "worker/text/grammar/schema/json_schema.hpp"

namespace leasehold {
namespace {

Result<Grammar> compiled(const GrammarSource& source, WorkBudget& work) {
  switch (source.kind) {
    case GrammarKind::Gbnf:
      return parse_gbnf(source.text);
    case GrammarKind::JsonObject:
      return json_object_grammar();
    case GrammarKind::JsonSchema:
      return compile_json_schema(source.text, SchemaMode::Strict, work);
    case GrammarKind::LenientJsonSchema:
      return compile_json_schema(source.text, SchemaMode::Lenient, work);
    case GrammarKind::Regex:
      return compile_regex(source.text, work);
    case GrammarKind::None:
      break;
  }
  std::unreachable();
}

}  // namespace

Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source,
                                                       WorkBudget& work) {
  if (source.kind == GrammarKind::None) return nullptr;
  return std::make_shared<const Grammar>(TRY(compiled(source, work)));
}

Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source) {
  WorkBudget work;
  return compile_grammar(source, work);
}

}  // namespace leasehold
