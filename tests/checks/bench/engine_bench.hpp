/// Tokens per second of a forward pass: decoding alone and in batches, and a prompt.
///
/// The figures are "decode", "batch_8", "batch_32" and "prefill".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct EngineBenchConfig {
  std::string model_path;
  std::string simd;  ///< A SIMD path by name; empty: the fastest of this CPU.
  std::uint32_t threads = 1;
  std::uint32_t prompt_tokens = 128;
  std::uint32_t decoded_tokens = 3;  ///< Per sequence.
  std::uint32_t rounds = 5;  ///< Each measures every figure once, so that all have the same noise.
};

/// {"engine": {"model", "threads", "f32": …, "int8": …, "int8_to_f32": …}}, where … has the
/// figures: medians over the rounds of tokens per second, and of their ratios. "f32" and "int8"
/// also have "batch_gain", the ratio of batch_8 to decode. With one thread, times are its CPU time,
/// so that other programs do not count; with several, they are wall-clock times. Errors: those of
/// loading.
Result<nlohmann::json> measure_engine(const EngineBenchConfig& config);

/// {"figures": …} of one round in int8, a worker's default, in wall-clock time: our side of a
/// comparison with another engine (tests/checks/peer). Errors: those of loading.
Result<nlohmann::json> measure_figures(const EngineBenchConfig& config);

/// Texts that are decoded together, each from its prompt to its last token.
struct DecodedTexts {
  std::string model_path;
  std::string simd;  ///< Empty: the fastest path of this CPU.
  std::uint32_t threads = 1;
  std::uint32_t texts = 1;
  std::uint32_t prompt_tokens = 1;
  std::uint32_t tokens = 1;  ///< Of each text, after its prompt.
};
/// Tokens per second of the forward pass in int8 arithmetic, in this process and without
/// scheduler, sampling and clients; by CPU time for one thread. Errors: those of LocalModel.
Result<double> decode_rate(const DecodedTexts& texts);

}  // namespace leasehold::bench
