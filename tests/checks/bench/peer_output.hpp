/// Reads what llama.cpp's `llama-bench` and `llama-batched-bench` print as JSON lines. Pure.
///
/// Source: the field names that both programs print with `-o jsonl` and `--output-format jsonl`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tests/checks/bench/engine_figures.hpp"

namespace leasehold::bench {

/// The result of one run of `llama-bench` with a prompt and an answer.
struct PeerBenchOutput {
  std::string version;  ///< Commit and number of the build.
  std::string format;   ///< The program's description of the file: shape and type.
  double prefill = 0;   ///< In tokens per second, like `decode`.
  double decode = 0;
};

/// Errors: MalformedMessage if the output has not one line for the prompt and one for the answer,
/// if a field is missing, if a speed is not positive, or if the number of threads is another.
Result<PeerBenchOutput> parse_peer_bench(std::string_view output, std::uint32_t threads);

/// "batch_8" and "batch_32" of one run of `llama-batched-bench`. Errors: those of parse_peer_bench.
Result<Figures> parse_peer_batches(std::string_view output, std::uint32_t threads);

}  // namespace leasehold::bench
