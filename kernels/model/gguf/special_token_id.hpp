/// The ids of a vocabulary's control tokens in a model file's metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Converters write this id for an absent token, or -1 where the value has a sign.
inline constexpr std::uint32_t kNoTokenId = UINT32_MAX;

/// The value of `tokenizer.ggml.<name>_token_id`, or `fallback` if the file lacks the key. Returns
/// nothing if that value marks an absent token. Errors: FileCorrupt for an id that is not one of
/// the `n_tokens` tokens; UnsupportedModel for a value of another type than an integer.
Result<std::optional<std::uint32_t>> special_token_id(const GgufFile& file, std::string_view name,
                                                      std::uint64_t n_tokens,
                                                      std::uint32_t fallback = kNoTokenId);

}  // namespace leasehold
