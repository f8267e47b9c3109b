/// JSON schema (draft 2020-12, the part below) as a grammar of the texts that are valid under it.
///
///   type             one or a list; without it: what the other keywords speak of, else anything
///   enum const       literally, as compact JSON; `type` beside them picks
///   object           properties required additionalProperties; members come in the schema's order,
///                    others after them. additionalProperties counts as false where `properties`
///                    is given and it is not: still valid, and no rambling.
///   array            items prefixItems minItems maxItems
///   string           minLength maxLength, or pattern (schema_pattern.hpp), or format: date time
///                    date-time uuid
///   integer          minimum maximum exclusiveMinimum exclusiveMaximum; within ±(2^53 - 1)
///   number boolean null
///   anyOf oneOf      one of them; that no second one of oneOf fits too is not checked
///   allOf            one schema, or objects without combinators, merged
///   $ref             into this document: "#", "#/$defs/…", any JSON pointer; may be recursive
///   true {}          anything
///
/// Annotations (title, description, default, examples, …) say nothing about validity and are
/// skipped. Every other keyword is refused by name and place: a text that only might be valid is
/// worse than none. JSON is laid out as in json_rules.hpp; extra members' names come without
/// escapes and are none of the declared ones.
#pragma once

#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"

namespace leasehold {

/// Errors: BadRequest naming keyword and path, e.g. "#/properties/age", or the rule that makes the
/// grammar no grammar (a schema no finite text is valid under).
Result<Grammar> parse_json_schema(std::string_view text);

/// Any JSON object.
Grammar json_object_grammar();

}  // namespace leasehold
