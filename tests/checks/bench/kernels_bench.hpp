/// The speed of matmuls by format and number of rows, as a share of what this processor can do.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct KernelsBenchConfig {
  std::string simd;  ///< A SIMD path by name; empty: every path of this CPU except the scalar one.
  std::uint32_t threads = 1;
  std::uint32_t rounds = 9;
  std::vector<std::string> formats;  ///< Names of tensor types; empty: all.
  std::vector<std::uint32_t> rows = {1, 8, 32, 512};
  std::uint32_t n_out = 4864;  ///< About the size of the gate matrix in the 0.5B shape.
  std::uint32_t n_in = 1024;   ///< Whole blocks of every format.
  /// Size of the memory with copies of the matrix, which launches read in turn so that no cache
  /// holds them.
  std::uint64_t memory_mib = 128;
};

/// {"kernels": {"threads", "rounds", "n_out", "n_in", "paths": {PATH: {"byte_products", "limits":
/// {"gb_per_s", "fma_gmac_per_s", "byte_gmac_per_s"}, "matmul": {FORMAT: {ROWS: {"gb_per_s",
/// "gmac_per_s", "share_of_limit", "limited_by", "unit_us"}}}}}}}.
///
/// Every round measures the limits and each matmul once; the report has the best of the rounds. A
/// matmul's limit is the longer of the time to read its weights once and the time to multiply in
/// registers. "limited_by" names that limit, or is "other instructions" if the matmul takes more
/// than 1 / 0.6 of the limit. "unit_us" is the mean time of a unit. Formats in blocks are
/// multiplied in int8 arithmetic, and the times include the rounding of the rows. With one thread,
/// times are its CPU time; with several, wall-clock time. Errors: BadRequest for a format or shape
/// that cannot be multiplied; OutOfMemory; SystemError.
Result<nlohmann::json> measure_kernels(const KernelsBenchConfig& config);

/// The report as a table in Markdown.
std::string kernels_text(const nlohmann::json& report);

}  // namespace leasehold::bench
