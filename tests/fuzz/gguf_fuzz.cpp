// Model files, read as a worker does before it computes. Input: the file.
#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "kernels/model/weights_layout.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "worker/text/tokenizer/stream_decoder.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

using namespace leasehold;

namespace {

Result<void> read_tensors(const GgufFile& file) {
  const ModelConfig config = TRY(read_config(file));
  const WeightsLayout layout = TRY(make_weights_layout(file, config));
  for (const WeightTensor& weight : layout.weights) {
    std::vector<std::byte> bytes(weight.size_bytes);
    TRY(read_weight(file, weight, 0, bytes));
  }
  return {};
}

Result<void> read_tokenizer(const GgufFile& file) {
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  StreamDecoder decoder(tokenizer);
  for (const auto special : {SpecialTokens::AsText, SpecialTokens::AsTokens})
    for (const TokenId token : TRY(tokenizer.encode("cab ab\xff é<e>", special)))
      decoder.push(token);
  return {};
}

bool is_typed(const Error& error) {
  return error.code == Errc::FileCorrupt || error.code == Errc::UnsupportedModel ||
         error.code == Errc::MissingWeight;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const UniqueFd fd = fuzz::memory_file({data, size}, 0);
  const Result<GgufFile> file = GgufFile::open(fuzz::path_of(fd));
  fuzz::check(file || is_typed(file.error()));
  if (!file) return 0;
  const Result<void> tensors = read_tensors(*file);
  fuzz::check(tensors || is_typed(tensors.error()));
  (void)read_tokenizer(*file);
  return 0;
}
