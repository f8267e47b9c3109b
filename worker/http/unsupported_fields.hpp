/// Fields that vLLM, SGLang, llama.cpp or OpenAI document, that change an answer, and that are not
/// built. Pure.
#pragma once

#include <span>

#include "worker/http/body_field.hpp"

namespace leasehold::http {

struct UnsupportedField {
  const char* name;
  /// JSON: an array of the values that ask for nothing. Clients send them, as they are the
  /// defaults of a server.
  const char* neutral = "[]";
};

std::span<const UnsupportedField> unsupported_fields();

/// Errors: BadRequest naming a field whose value asks for something.
Read<void> check_unsupported(const BodyFields& body);

}  // namespace leasehold::http
