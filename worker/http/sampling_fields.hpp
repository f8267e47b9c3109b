/// Fields of a body whose names and meanings are those of wire::Sampling.
#pragma once

#include <array>

namespace leasehold::http {

inline constexpr std::array kSamplingFields{"temperature",
                                            "top_p",
                                            "top_k",
                                            "min_p",
                                            "typical_p",
                                            "repetition_penalty",
                                            "presence_penalty",
                                            "frequency_penalty",
                                            "logit_bias",
                                            "stop",
                                            "stop_token_ids",
                                            "seed"};

}  // namespace leasehold::http
