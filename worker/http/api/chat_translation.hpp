/// What the translations of other APIs' bodies into the body of a chat share. Pure.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// A field that has one value that can be honoured; a null `value`: none.
struct FixedField {
  const char* key;
  OrderedJson value;
  const char* refusal;
};

/// Errors: BadRequest for the first of `fixed` that is sent with another value.
Read<void> check_fixed_fields(const Field& body, std::span<const FixedField> fixed);

/// The text of a field, which is one of `words`. Errors: BadRequest, also for a field that is not
/// sent.
Read<std::string> word_of(const Field& field, std::initializer_list<std::string_view> words);

/// A path in a chat, and the path of the same value in the translated body.
struct RenamedPath {
  std::string_view chat;
  std::string_view body;
};

/// Replaces the chat paths in an error by those of the translated body.
ApiError renamed(ApiError refused, std::span<const RenamedPath> paths);

}  // namespace leasehold::http
