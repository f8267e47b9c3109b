/// Reads the fields of a body that choose the tokens of a text. Pure.
#pragma once

#include <array>

#include "ipc/control/messages_tenant.hpp"
#include "worker/http/body_field.hpp"

namespace leasehold::http {

/// With names and meanings of wire::Sampling, and the other names that llama.cpp has for them.
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

/// Fields of `out` whose field is not sent keep their value. `n_vocab` 0: token ids are checked
/// later. Errors: BadRequest for a value of another type or out of its range.
Read<void> read_sampling(const BodyFields& body, std::uint32_t n_vocab, wire::Sampling& out);

/// A token id of the vocabulary. Errors: BadRequest, also for null.
Read<std::int32_t> token_id(const Field& field, std::uint32_t n_vocab);

/// The first of the fields that is sent, for a value with several names. Errors: BadRequest for
/// another one with another value.
Read<Field> one_of(const BodyFields& body, std::span<const char* const> names);

}  // namespace leasehold::http
