/// Functions for translating the bodies of other APIs into the body of a chat. Pure.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// Returns the fields that `body` has and that mean the same in a chat: those of `same`, of
/// sampling, and constraints. A `response_format` is left out, because it has another place there.
OrderedJson same_fields(const Field& body, std::span<const char* const> same);

/// A field that is refused unless it has this value. Null means that any value is refused.
struct FixedField {
  const char* key;
  OrderedJson value;
  const char* refusal;
};

/// Errors: BadRequest for the first of `fixed` that is sent with another value.
Read<void> check_fixed_fields(const Field& body, std::span<const FixedField> fixed);

/// Returns the text of a field. Errors: BadRequest unless it is sent and is one of `words`.
Read<std::string> word_of(const Field& field, std::initializer_list<std::string_view> words);

/// A path in a chat, and the path of the same value in the translated body.
struct RenamedPath {
  std::string_view chat;
  std::string_view body;
};

/// Replaces the chat paths in an error by those of the translated body.
ApiError renamed(ApiError refused, std::span<const RenamedPath> paths);

}  // namespace leasehold::http
