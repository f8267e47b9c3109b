// Damaged model files give a typed error or a usable model.
#include <catch2/catch.hpp>
#include <span>

#include "common/random.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/weights_layout.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/test_seed.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

/// Reads a model file as a worker does before it computes.
Result<void> load(const std::string& path) {
  const GgufFile file = TRY(GgufFile::open(path));
  const ModelConfig config = TRY(read_config(file));
  const WeightsLayout layout = TRY(make_weights_layout(file, config));
  for (const WeightTensor& weight : layout.weights) {
    std::vector<std::byte> bytes(weight.size_bytes);
    TRY(file.read(*file.find(weight.name), 0, bytes));
  }
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  StreamDecoder decoder(tokenizer);
  for (const TokenId token : TRY(tokenizer.encode("cab ab\xff é"))) decoder.push(token);
  return {};
}

bool is_typed(const Result<void>& loaded) {
  if (loaded) return true;
  return loaded.error().code == Errc::FileCorrupt ||
         loaded.error().code == Errc::UnsupportedModel ||
         loaded.error().code == Errc::MissingWeight;
}

/// The offset in "…: at byte 17: …".
std::uint64_t error_offset(const Error& error) {
  constexpr std::string_view kMark = "at byte ";
  const std::size_t at = error.detail.find(kMark);
  REQUIRE(at != std::string::npos);
  return std::stoull(error.detail.substr(at + kMark.size()));
}

/// The approximate size of the data before the tensors.
std::size_t directory_size(const std::string& bytes) {
  const std::size_t last_name = bytes.rfind("blk.1.ffn_down.weight");
  return last_name + 64;
}

void damage(std::string& bytes, SeededRandom& random) {
  const std::size_t at = random.below(directory_size(bytes));
  switch (random.below(4)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.replace(at, 8, raw(random()));
      break;
    default:
      bytes.replace(at, 8, raw(~std::uint64_t{0} >> random.below(64)));
  }
}

}  // namespace

TEST_CASE(
    "damaged model: a file truncated in its directory is corrupt, with an offset in the file") {
  const std::string bytes = tiny_llama().bytes();
  const std::size_t end = directory_size(bytes);
  for (std::size_t size = 0; size < end; ++size) {
    const auto directory = read_gguf_directory(std::as_bytes(std::span(bytes.data(), size)), "cut");
    INFO(size);
    REQUIRE_FALSE(directory.has_value());
    REQUIRE(directory.error().code == Errc::FileCorrupt);
    REQUIRE(error_offset(directory.error()) <= size);
  }
}

TEST_CASE("damaged model: a file truncated in its tensors is corrupt") {
  const std::string bytes = tiny_llama().bytes();
  const TemporaryFile file(bytes);
  for (std::size_t size = directory_size(bytes); size < bytes.size(); size += 509) {
    file.overwrite(std::string_view(bytes).substr(0, size));
    const auto loaded = load(file.path());
    INFO(size);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().code == Errc::FileCorrupt);
  }
}

TEST_CASE("damaged model: flipped and overwritten bytes give a typed error or a model") {
  const std::string whole = tiny_llama().bytes();
  const TemporaryFile file(whole);
  REQUIRE(load(file.path()).has_value());
  SeededRandom random(test_seed(20261120));
  int n_refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) damage(bytes, random);
    file.overwrite(bytes);
    const auto loaded = load(file.path());
    if (!loaded) ++n_refused;
    INFO("SEED=" << test_seed(20261120) << " file " << i << ": "
                 << (loaded ? "" : loaded.error().detail));
    REQUIRE(is_typed(loaded));
  }
  CHECK(n_refused > 500);
}
