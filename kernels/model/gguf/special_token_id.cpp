#include "kernels/model/gguf/special_token_id.hpp"

#include <fmt/format.h>

namespace leasehold {

Result<std::optional<std::uint32_t>> special_token_id(const GgufFile& file, std::string_view name,
                                                      std::uint64_t n_tokens,
                                                      std::uint32_t fallback) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto id = TRY(file.get_or<std::int64_t>(key, fallback));
  if (id == -1 || id == kNoTokenId) return std::nullopt;
  if (id < 0 || static_cast<std::uint64_t>(id) >= n_tokens) {
    return fail(Errc::FileCorrupt, fmt::format("{}: {} is {}; the vocabulary has {} tokens",
                                               file.path(), key, id, n_tokens));
  }
  return static_cast<std::uint32_t>(id);
}

}  // namespace leasehold
