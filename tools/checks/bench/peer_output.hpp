/// Reads what llama.cpp's `llama-bench` and `llama-batched-bench` print as JSON lines. Pure.
///
/// Source: the field names that both programs print with `-o jsonl` and `--output-format jsonl`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/checks/bench/engine_figures.hpp"

namespace leasehold::bench {

/// What one run of `llama-bench` with a prompt and an answer says.
struct PeerBenchOutput {
  std::string version;  ///< Commit and number of its build.
  std::string format;   ///< Its description of the file: shape and type.
  double prefill = 0;   ///< Tokens per second, as `decode`.
  double decode = 0;
};

/// Errors: MalformedMessage without one line for the prompt and one for the answer, for a field
/// that is missing, for a speed that is not positive, and for another number of threads.
Result<PeerBenchOutput> parse_peer_bench(std::string_view output, std::uint32_t threads);

/// "batch_8" and "batch_32" of one run of `llama-batched-bench`. Errors: as parse_peer_bench.
Result<Figures> parse_peer_batches(std::string_view output, std::uint32_t threads);

}  // namespace leasehold::bench
