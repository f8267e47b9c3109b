/// An embedding as text: its floats in little-endian order, as base64 (RFC 4648, with padding).
/// Messages have it in this form, and OpenAI's API with `encoding_format` "base64". Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace leasehold::wire {

std::string embedding_text(std::span<const float> embedding);
/// Errors: MalformedMessage for another text.
Result<std::vector<float>> embedding_of(std::string_view text);

}  // namespace leasehold::wire
