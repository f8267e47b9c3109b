/// JSON schema (draft 2020-12, the part below) as a grammar of valid texts.
///
///   type             one or a list; without it: the types of the other keywords, else any
///   enum const       literally, as compact JSON; `type` selects among them
///   object           properties required additionalProperties; members in the schema's order, then
///                    others. additionalProperties defaults to false if `properties` is given.
///   array            items prefixItems minItems maxItems
///   string           minLength maxLength, or pattern (schema_pattern.hpp), or format: date time
///                    date-time uuid
///   integer          minimum maximum exclusiveMinimum exclusiveMaximum; within ±(2^53 - 1)
///   number boolean null
///   anyOf oneOf      one of them; oneOf does not check that only one fits
///   allOf            one schema, or objects without combinators, merged
///   $ref             into this document: "#", "#/$defs/…", any JSON pointer; may be recursive
///   true {}          anything
///
/// Annotations (title, description, default, examples, …) are skipped. Every other keyword is
/// refused with its name and path, so that every generated text is valid. JSON is laid out as in
/// json_rules.hpp. Names of additional members have no escapes and differ from declared names.
#pragma once

#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"

namespace leasehold {

/// Errors: BadRequest naming the keyword and its path, for example "#/properties/age", or a rule
/// that no finite text completes.
Result<Grammar> parse_json_schema(std::string_view text);

/// Any JSON object.
Grammar json_object_grammar();

}  // namespace leasehold
