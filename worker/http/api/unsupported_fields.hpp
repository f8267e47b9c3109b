/// The fields that vLLM, SGLang, llama.cpp or OpenAI document, that change an answer, and that this
/// server does not implement. Pure.
#pragma once

#include <span>

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

struct UnsupportedField {
  const char* name;
  /// A JSON array of the values that ask for nothing. Clients send them because they are defaults
  /// of some server.
  const char* neutral = "[]";
};

std::span<const UnsupportedField> unsupported_fields();

/// Errors: BadRequest naming a field whose value asks for something.
Read<void> check_unsupported(const BodyFields& body);

}  // namespace leasehold::http
