/// Parses the JSON lines that llama.cpp's `llama-bench` and `llama-batched-bench` print. Pure.
///
/// Source: the field names that both programs print with `-o jsonl` and `--output-format jsonl`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/checks/bench/engine_figures.hpp"

namespace leasehold::bench {

/// The result of one run of `llama-bench` with a prompt and an answer.
struct PeerBenchOutput {
  std::string version;  ///< Commit and number of llama.cpp's build.
  std::string format;   ///< llama.cpp's description of the model file: shape and type.
  double prefill = 0;   ///< Both speeds are in tokens per second.
  double decode = 0;
};

/// Errors: MalformedMessage unless there is one line for the prompt and one for the answer, and for
/// a missing field, a speed that is not positive, and another number of threads.
Result<PeerBenchOutput> parse_peer_bench(std::string_view output, std::uint32_t threads);

/// Returns "batch_8" and "batch_32" from one run of `llama-batched-bench`. Errors: as
/// parse_peer_bench.
Result<Figures> parse_peer_batches(std::string_view output, std::uint32_t threads);

}  // namespace leasehold::bench
