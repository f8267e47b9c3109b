#include "tests/model/same_bits.hpp"

#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include "common/hex.hpp"
#include "common/random.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kMaxBackgroundChunk = 3;

std::uint32_t chunk_of(Chunking chunking, std::uint32_t left, SeededRandom& random) {
  switch (chunking) {
    case Chunking::OneByOne:
      return 1;
    case Chunking::Whole:
      return left;
    case Chunking::Sixteens:
      return std::min(left, 16u);
    case Chunking::Halving:
      return (left + 1) / 2;
    case Chunking::Random:
      return std::min(left, static_cast<std::uint32_t>(1 + random.below(20)));
  }
  return left;
}

/// Adds rows of another sequence of the batch, as long as it has room for them.
void add_background_rows(std::uint32_t sequence, std::uint32_t n_vocab, std::uint32_t& room,
                         SeededRandom& random, std::vector<LocalRow>& rows) {
  const auto wanted = static_cast<std::uint32_t>(1 + random.below(kMaxBackgroundChunk));
  const std::uint32_t n = std::min(wanted, room);
  room -= n;
  for (std::uint32_t i = 0; i < n; ++i)
    rows.push_back({.sequence = sequence,
                    .token = static_cast<TokenId>(random.below(n_vocab)),
                    .wants_logits = random.below(2) == 0});
}

/// Ranks below and above a register of AVX-512.
std::vector<LocalAdapter> adapters_of(const Variant& variant) {
  if (!variant.beside_adapters && !variant.has_adapter) return {};
  return {{.rank = 20, .seed = 1}, {.rank = 3, .type = TensorType::F32, .seed = 2}};
}

void choose_adapters(LocalModel& model, const Variant& variant) {
  if (variant.has_adapter) model.use_adapter(variant.batch_index, 0);
  for (std::uint32_t s = 0; s < variant.batch; ++s)
    if (variant.beside_adapters && s != variant.batch_index && s % 3 < 2)
      model.use_adapter(s, s % 3);
}

}  // namespace

std::string describe(const Variant& variant) {
  constexpr std::string_view kNames[] = {"one by one", "whole", "sixteens", "halving", "random"};
  static_assert(std::size(kNames) == kChunkings);
  return fmt::format(
      "{} threads={} kv={} arithmetic={} batch={} batch_index={} chunks={} blocks={} seed={} "
      "beside_adapters={} has_adapter={}",
      variant.placement != nullptr ? "card"
      : variant.reference          ? "reference"
                                   : name(variant.simd),
      variant.threads, name(variant.kv_type), name(variant.arithmetic), variant.batch,
      variant.batch_index, kNames[static_cast<std::size_t>(variant.chunking)],
      variant.scattered ? "scattered" : "in order", variant.seed, variant.beside_adapters,
      variant.has_adapter);
}

std::vector<float> compute_logits(const std::string& model_path, const std::vector<TokenId>& tokens,
                                  const Variant& variant) {
  SeededRandom random(variant.seed);
  const auto n_tokens = static_cast<std::uint32_t>(tokens.size());
  const auto model =
      required(LocalModel::load({.model_path = model_path,
                                 .placement = variant.placement,
                                 .reference = variant.reference,
                                 .simd = variant.simd,
                                 .threads = variant.threads,
                                 .kv_type = variant.kv_type,
                                 .arithmetic = variant.arithmetic,
                                 .max_rows = n_tokens + (variant.batch - 1) * kMaxBackgroundChunk,
                                 .sequences = variant.batch,
                                 .positions = n_tokens,
                                 .adapters = adapters_of(variant),
                                 .scatter_seed = variant.scattered ? variant.seed : 0}));
  choose_adapters(*model, variant);
  std::vector<std::uint32_t> room(variant.batch, n_tokens);
  std::vector<float> all;
  for (std::uint32_t done = 0; done < n_tokens;) {
    const std::uint32_t chunk = chunk_of(variant.chunking, n_tokens - done, random);
    std::vector<LocalRow> rows;
    std::uint32_t first_logits = 0;
    for (std::uint32_t s = 0; s < variant.batch; ++s) {
      if (s != variant.batch_index) {
        add_background_rows(s, model->config().n_vocab, room[s], random, rows);
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
