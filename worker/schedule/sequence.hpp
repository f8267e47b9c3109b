/// One running request: its tokens and how far the KV cache has them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/checksum.hpp"
#include "worker/kv/block_table.hpp"
#include "worker/schedule/request.hpp"

namespace leasehold {

class TokenRules;

struct Sequence {
  PromptRequest request;
  std::vector<TokenId> tokens;  ///< Prompt, then everything emitted.
  BlockTable blocks;
  std::uint32_t stop_slot = 0;  ///< On the stop running_requests, its own while it runs.
  std::uint64_t admission = 0;  ///< Counts admissions of this scheduler; never the same twice.
  std::shared_ptr<TokenRules> rules;  ///< The engine's, made when it first draws a token.

  // How much of it the sequence record has (worker/kv/sequence_record.hpp).
  std::uint64_t record_number = 0;  ///< Of the last commit; 0: no record yet.
  std::uint32_t recorded_tokens = 0;
  std::uint32_t recorded_blocks = 0;
  Checksum tokens_checksum;  ///< Over the recorded ones.
  Checksum blocks_checksum;

  Sequence(PromptRequest from, std::uint32_t tokens_per_block)
      : request(std::move(from)), tokens(request.prompt), blocks(tokens_per_block) {
    tokens.insert(tokens.end(), request.emitted.begin(), request.emitted.end());
  }

  /// Emitted over the whole life of the request, rebinds included.
  std::uint32_t emitted() const {
    return static_cast<std::uint32_t>(tokens.size() - request.prompt.size());
  }
  /// Positions not in the cache yet; 1 when decoding.
  std::uint32_t pending() const {
    return static_cast<std::uint32_t>(tokens.size()) - blocks.committed();
  }
};

}  // namespace leasehold
