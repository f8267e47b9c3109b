/// The oracle files and their tolerances: at most twice the distance between the oracle and the
/// fp32 reference on dequantized weights, which the tests measure again. kernels/MEASUREMENTS.md
/// has the table.
#pragma once

#include <string_view>

namespace leasehold::testing {

struct FormatRow {
  std::string_view file;
  double tolerance;
};

inline constexpr FormatRow kFormats[] = {
    {"kq-llama-f32", 1e-4},      {"kq-llama-f16", 0.06},    {"kq-llama-bf16", 0.18},
    {"kq-llama-q8_0", 0.6},      {"kq-llama-q4_0", 0.6},    {"kq-llama-q4_1", 0.7},
    {"kq-llama-q5_0", 0.6},      {"kq-llama-q5_1", 0.65},   {"kq-llama-q2_k", 0.8},
    {"kq-llama-q3_k_m", 0.85},   {"kq-llama-q4_k_m", 0.75}, {"kq-llama-q5_k_m", 0.75},
    {"kq-llama-q6_k", 0.85},     {"stories260K-f32", 1e-4}, {"stories260K-f16", 0.02},
    {"stories260K-q8_0", 0.22},  {"stories260K-q4_0", 0.2}, {"kq-qwen2-q8_0", 0.75},
    {"kq-qwen2-q4_k_m", 0.9},    {"kq-qwen3-q8_0", 0.36},   {"kq-qwen3-q4_k_m", 0.6},
    {"wide-llama-iq4_nl", 0.65}, {"wide-llama-iq4_xs", 0.8}};

constexpr double tolerance_of(std::string_view file) {
  for (const FormatRow& row : kFormats)
    if (row.file == file) return row.tolerance;
  return 0;
}

}  // namespace leasehold::testing
