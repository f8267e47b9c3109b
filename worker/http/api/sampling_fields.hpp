/// Reads the body fields that control sampling. Pure.
#pragma once

#include <array>

#include "ipc/control/messages/tenant.hpp"
#include "worker/http/api/body_field.hpp"

namespace leasehold::http {

/// The fields have the names and meanings of wire::Sampling; llama.cpp's other names are included.
inline constexpr std::array kSamplingFields{"temperature",
                                            "top_p",
                                            "top_k",
                                            "min_p",
                                            "typical_p",
                                            "repetition_penalty",
                                            "repeat_penalty",
                                            "presence_penalty",
                                            "frequency_penalty",
                                            "penalty_window",
                                            "repeat_last_n",
                                            "logit_bias",
                                            "stop",
                                            "include_stop_str_in_output",
                                            "stop_token_ids",
                                            "min_tokens",
                                            "seed"};

/// A member of `out` keeps its value if its field is not sent. `n_vocab` 0: token ids are checked
/// later. Errors: BadRequest for a value of the wrong type or out of range.
Read<void> read_sampling(const BodyFields& body, std::uint32_t n_vocab, wire::Sampling& out);

/// Reads a token id of the vocabulary. Errors: BadRequest, also for null.
Read<std::int32_t> token_id(const Field& field, std::uint32_t n_vocab);

/// The first sent field of several names for one value. Errors: BadRequest if two of them are sent
/// with different values.
Read<Field> one_of(const BodyFields& body, std::span<const char* const> names);

}  // namespace leasehold::http
