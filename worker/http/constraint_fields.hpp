/// Reads what constrains a text: a format, a schema, a grammar, a regular expression or a list of
/// choices, in the words of each server that clients were written for. Pure.
///
///   OpenAI         response_format {type: text | json_object | json_schema}
///   vLLM           guided_json guided_regex guided_choice guided_grammar guided_json_object, and
///                  structured_outputs {json, regex, choice, grammar, json_object}
///   SGLang         regex ebnf json_schema
///   llama.cpp      grammar json_schema response_format {type: json_object | json_schema, schema}
///   Hugging Face   response_format {type: json | json_object | json_schema | regex, value}
///
/// Grammars are GBNF. A schema is strict, except that of OpenAI's json_schema without
/// `strict: true`.
#pragma once

#include "ipc/control/messages_tenant.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// The names of the fields above, each of the body itself.
std::span<const char* const> constraint_fields();

struct ConstraintPaths {
  std::string field;   ///< Of the field of the body that constrains the text; empty: none.
  std::string schema;  ///< Of the JSON schema in it, which the worker compiles; empty: none.
};

/// Sets the constraint of `out`, and returns where it is.
/// Errors: BadRequest for a value of another form, and for the second of two constraints.
Read<ConstraintPaths> read_constraint(const BodyFields& body, wire::Sampling& out);

}  // namespace leasehold::http
