#include "tests/model/same_bits.hpp"

#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "common/hex.hpp"
#include "common/random.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kLongestCompanionChunk = 3;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().detail);
  return *std::move(result);
}

std::uint32_t chunk_of(Chunking chunking, std::uint32_t left, SeededRandom& random) {
  switch (chunking) {
    case Chunking::OneByOne:
      return 1;
    case Chunking::Whole:
      return left;
    case Chunking::Sixteens:
      return std::min(left, 16u);
    case Chunking::Random:
      return std::min(left, static_cast<std::uint32_t>(1 + random.below(20)));
  }
  return left;
}

/// Others in the batch: rows of their own as long as they have room, then none.
class Companions {
 public:
  Companions(std::uint32_t n_sequences, std::uint32_t room, std::uint32_t n_vocab,
             SeededRandom& random)
      : left_(n_sequences, room), n_vocab_(n_vocab), random_(random) {}

  void add_rows(std::uint32_t sequence, std::vector<LocalRow>& rows) {
    const auto wanted = static_cast<std::uint32_t>(1 + random_.below(kLongestCompanionChunk));
    const std::uint32_t n = std::min(wanted, left_[sequence]);
    left_[sequence] -= n;
    for (std::uint32_t i = 0; i < n; ++i)
      rows.push_back({.sequence = sequence,
                      .token = static_cast<TokenId>(random_.below(n_vocab_)),
                      .wants_logits = random_.below(2) == 0});
  }

 private:
  std::vector<std::uint32_t> left_;
  std::uint32_t n_vocab_;
  SeededRandom& random_;
};

}  // namespace

std::string describe(const Way& way) {
  constexpr std::string_view kChunkings[] = {"one by one", "whole", "sixteens", "random"};
  return fmt::format("{} threads={} kv={} batch={} place={} chunks={} blocks={} seed={}",
                     way.reference ? "reference" : name(way.simd), way.threads,
                     way.kv_type == KvType::F16 ? "f16" : "f32", way.batch, way.place,
                     kChunkings[static_cast<std::size_t>(way.chunking)],
                     way.scattered ? "scattered" : "in order", way.seed);
}

std::vector<float> logits_by(const std::string& model_path, const std::vector<TokenId>& tokens,
                             const Way& way) {
  SeededRandom random(way.seed);
  const auto n_tokens = static_cast<std::uint32_t>(tokens.size());
  const auto model =
      must(LocalModel::load({.model_path = model_path,
                             .reference = way.reference,
                             .simd = way.simd,
                             .threads = way.threads,
                             .kv_type = way.kv_type,
                             .max_rows = n_tokens + (way.batch - 1) * kLongestCompanionChunk,
                             .sequences = way.batch,
                             .positions = n_tokens,
                             .scatter_seed = way.scattered ? way.seed : 0}));
  Companions companions(way.batch, n_tokens, model->config().n_vocab, random);
  std::vector<float> all;
  for (std::uint32_t done = 0; done < n_tokens;) {
    const std::uint32_t chunk = chunk_of(way.chunking, n_tokens - done, random);
    std::vector<LocalRow> rows;
    std::uint32_t first_logits = 0;
    for (std::uint32_t s = 0; s < way.batch; ++s) {
      if (s != way.place) {
        companions.add_rows(s, rows);
        continue;
      }
      first_logits =
          static_cast<std::uint32_t>(std::ranges::count(rows, true, &LocalRow::wants_logits));
      for (std::uint32_t i = 0; i < chunk; ++i)
        rows.push_back({.sequence = s, .token = tokens[done + i]});
    }
    if (const auto ran = model->forward(rows); !ran) throw std::runtime_error(ran.error().detail);
    for (std::uint32_t i = 0; i < chunk; ++i) {
      const auto logits = model->logits(first_logits + i);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    done += chunk;
  }
  return all;
}

std::string bits_digest(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  std::array<std::uint8_t, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(numbers.data()),
                     numbers.size() * sizeof(float));
  return to_hex(digest);
}

}  // namespace leasehold::testing
