/// JSON schema (draft 2020-12, and the spellings of older drafts) as a grammar of valid texts.
///
///   type             one or a list
///   enum const       literally, in any layout; the keywords beside them select values
///   object           properties required additionalProperties patternProperties propertyNames
///                    minProperties maxProperties dependentRequired dependentSchemas dependencies.
///                    Members in the schema's order, then others. additionalProperties defaults to
///                    false if `properties` is given.
///   array            items prefixItems additionalItems minItems maxItems
///   string           minLength maxLength pattern (schema_pattern.hpp) format (schema_formats.hpp)
///   integer number   minimum maximum exclusiveMinimum exclusiveMaximum; multipleOf whole numbers;
///                    integers within ±(2^53 - 1); numbers with bounds have no exponent
///   boolean null
///   anyOf allOf      beside any other keyword
///   oneOf            branches that exclude each other; see schema_proofs.hpp
///   $ref             into this document: "#", a JSON pointer, an $anchor or the $id of a part; may
///                    be recursive
///   true false
///
/// These keywords are refused by name, because no grammar can enforce them: not, if, uniqueItems,
/// contains, unevaluatedItems, unevaluatedProperties, multipleOf with fractions, $dynamicRef. All
/// other keywords are annotations, as the standard says. JSON is laid out as in json_rules.hpp.
/// Characters of names, and of texts with a pattern, are escaped only if they must be.
#pragma once

#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

enum class SchemaMode : std::uint8_t {
  Strict,   ///< Refuse keywords that no grammar can enforce.
  Lenient,  ///< Ignore them, and read oneOf as anyOf where branches may overlap.
};

/// Errors: BadRequest naming a keyword that is malformed or cannot be enforced and its path, for
/// example "#/properties/age"; naming the part at which the limit of work or size was reached; or
/// for a schema that no finite text satisfies.
Result<Grammar> compile_json_schema(std::string_view text, SchemaMode mode, WorkBudget& work);

/// The grammar of any JSON object.
Grammar json_object_grammar();

}  // namespace leasehold
