#include "worker/text/grammar/compile.hpp"

#include <utility>

#include "worker/text/grammar/gbnf.hpp"
#include "worker/text/grammar/json_schema.hpp"

namespace leasehold {

Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source) {
  switch (source.kind) {
    case GrammarKind::None:
      return nullptr;
    case GrammarKind::Gbnf:
      return std::make_shared<const Grammar>(TRY(parse_gbnf(source.text)));
    case GrammarKind::JsonObject:
      return std::make_shared<const Grammar>(json_object_grammar());
    case GrammarKind::JsonSchema:
      return std::make_shared<const Grammar>(TRY(parse_json_schema(source.text)));
  }
  std::unreachable();
}

}  // namespace leasehold
