/// Reads the fields that constrain a text to a format, a schema, a grammar, a regular expression or
/// a list of choices. Accepts the field names of several servers. Pure.
///
///   OpenAI         response_format {type: text | json_object | json_schema}
///   vLLM           guided_json guided_regex guided_choice guided_grammar guided_json_object, and
///                  structured_outputs {json, regex, choice, grammar, json_object}
///   SGLang         regex ebnf json_schema
///   llama.cpp      grammar json_schema response_format {type: json_object | json_schema, schema}
///   Hugging Face   response_format {type: json | json_object | json_schema | regex, value}
///
/// Grammars are GBNF. Every schema is strict, except one in OpenAI's json_schema whose `strict` is
/// not true.
#pragma once

#include "ipc/control/messages/tenant.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// The names of the fields above that are members of the body itself.
std::span<const char* const> constraint_fields();

struct ConstraintPaths {
  std::string field;   ///< The path of the field that constrains the text; empty: none.
  std::string schema;  ///< The path of the JSON schema that the worker compiles; empty: none.
};

/// Sets the constraint in `out` and returns the paths of its fields. Errors: BadRequest for a
/// malformed value, and for the second of two constraints.
Read<ConstraintPaths> read_constraint(const BodyFields& body, wire::Sampling& out);

}  // namespace leasehold::http
