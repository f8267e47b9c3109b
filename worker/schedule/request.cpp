#include "worker/schedule/request.hpp"

#include <fmt/format.h>

namespace leasehold {

Result<void> check_token_ids(std::span<const TokenId> tokens, std::uint32_t n_vocab) {
  const auto unknown = std::ranges::find_if(tokens, [n_vocab](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= n_vocab;
  });
  if (unknown == tokens.end()) return {};
  return fail(Errc::BadRequest,
              fmt::format("token id {} is not in the vocabulary; use ids from 0 to {}", *unknown,
                          n_vocab - 1));
}

}  // namespace leasehold
