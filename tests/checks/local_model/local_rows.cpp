/// What callers of a local model choose: the SIMD path and the rows of a step.
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold {

SimdPath simd_path_or_best(std::string_view name) {
  const auto given = simd_path_from_name(name);
  return given ? *given : best_simd_path();
}

std::vector<LocalRow> text_rows(std::uint32_t sequences, std::uint32_t count, std::uint32_t first) {
  constexpr std::uint32_t kFirstWord = 100, kWords = 50;
  std::vector<LocalRow> rows;
  for (std::uint32_t s = 0; s < sequences; ++s)
    for (std::uint32_t i = first; i < first + count; ++i)
      rows.push_back({.sequence = s,
                      .token = static_cast<TokenId>(kFirstWord + s + i % kWords),
                      .wants_logits = i + 1 == first + count});
  return rows;
}

}  // namespace leasehold
