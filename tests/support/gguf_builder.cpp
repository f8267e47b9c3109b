#include "tests/support/gguf_builder.hpp"
#include "tests/support/test_paths.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace leasehold::testing {
namespace {

template <class T>
std::string raw_array(GgufType type, const std::vector<T>& values) {
  std::string bytes = raw(std::to_underlying(type)) + raw(std::uint64_t{values.size()});
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, std::string>)
      bytes += raw_string(value);
    else
      bytes += raw(value);
  }
  return bytes;
}

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

std::string raw_string(std::string_view text) {
  return raw(std::uint64_t{text.size()}) + std::string(text);
}

GgufBuilder& GgufBuilder::set_raw(std::string_view key, GgufType type, std::string bytes) {
  const auto entry = std::ranges::find(entries_, key, &Entry::key);
  if (entry != entries_.end())
    *entry = {std::string(key), type, std::move(bytes)};
  else
    entries_.push_back({std::string(key), type, std::move(bytes)});
  return *this;
}

GgufBuilder& GgufBuilder::set(std::string_view key, std::uint32_t value) {
  return set_raw(key, GgufType::Uint32, raw(value));
}
GgufBuilder& GgufBuilder::set(std::string_view key, float value) {
  return set_raw(key, GgufType::Float32, raw(value));
}
GgufBuilder& GgufBuilder::set(std::string_view key, bool value) {
  return set_raw(key, GgufType::Bool, raw(value));
}
GgufBuilder& GgufBuilder::set(std::string_view key, std::string_view value) {
  return set_raw(key, GgufType::String, raw_string(value));
}
GgufBuilder& GgufBuilder::set(std::string_view key, const char* value) {
  return set(key, std::string_view(value));
}
GgufBuilder& GgufBuilder::set(std::string_view key, const std::vector<std::string>& values) {
  return set_raw(key, GgufType::Array, raw_array(GgufType::String, values));
}
GgufBuilder& GgufBuilder::set(std::string_view key, const std::vector<float>& values) {
  return set_raw(key, GgufType::Array, raw_array(GgufType::Float32, values));
}
GgufBuilder& GgufBuilder::set(std::string_view key, const std::vector<std::int32_t>& values) {
  return set_raw(key, GgufType::Array, raw_array(GgufType::Int32, values));
}

GgufBuilder& GgufBuilder::add_duplicate(std::string_view key, std::uint32_t value) {
  entries_.push_back({std::string(key), GgufType::Uint32, raw(value)});
  return *this;
}

GgufBuilder& GgufBuilder::remove(std::string_view key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  return *this;
}

GgufBuilder& GgufBuilder::add_duplicate_tensor(std::string_view name, TensorType type,
                                               std::vector<std::uint64_t> shape) {
  tensors_.push_back(
      {std::string(name), type, std::move(shape), std::to_underlying(type), kInSequence, {}});
  return *this;
}

GgufBuilder& GgufBuilder::tensor(std::string_view name, TensorType type,
                                 std::vector<std::uint64_t> shape) {
  const auto found = std::ranges::find(tensors_, name, &Tensor::name);
  if (found == tensors_.end()) return add_duplicate_tensor(name, type, std::move(shape));
  *found = {std::string(name), type, std::move(shape), std::to_underlying(type), kInSequence, {}};
  return *this;
}

GgufBuilder& GgufBuilder::vector(std::string_view name, const std::vector<float>& numbers) {
  tensor(name, TensorType::F32, {numbers.size()});
  std::string& bytes = named(name).bytes;
  for (const float number : numbers) bytes += raw(number);
  return *this;
}

GgufBuilder& GgufBuilder::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

GgufBuilder::Tensor& GgufBuilder::named(std::string_view name) {
  return *std::ranges::find(tensors_, name, &Tensor::name);
}

GgufBuilder& GgufBuilder::override_type(std::string_view name, std::uint32_t number) {
  named(name).written_type = number;
  return *this;
}

GgufBuilder& GgufBuilder::override_offset(std::string_view name, std::uint64_t offset) {
  named(name).written_offset = offset;
  return *this;
}

std::string GgufBuilder::bytes() const {
  std::string file = magic + raw(version) + raw(std::uint64_t{tensors_.size()}) +
                     raw(std::uint64_t{entries_.size()});
  for (const Entry& entry : entries_)
    file += raw_string(entry.key) + raw(std::to_underlying(entry.type)) + entry.bytes;
  std::string data;
  for (const Tensor& tensor : tensors_) {
    std::uint64_t rows = 1;
    file += raw_string(tensor.name) + raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::uint64_t length : tensor.shape) file += raw(length);
    for (std::size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    const bool in_sequence = tensor.written_offset == kInSequence;
    file += raw(tensor.written_type) +
            raw(in_sequence ? std::uint64_t{data.size()} : tensor.written_offset);
    const std::uint64_t end = data.size() + rows * row_size_bytes(tensor.type, tensor.shape[0]);
    data += tensor.bytes;
    while (data.size() < end) data += static_cast<char>(data.size() % 251);
    data.resize(rounded_up(data.size(), alignment), '\0');
  }
  file.resize(rounded_up(file.size(), alignment), '\0');
  return file + data;
}

void add_tokenizer(GgufBuilder& builder) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    tokens.push_back({'<', '0', 'x', kHex[byte / 16], kHex[byte % 16], '>'});
    types.push_back(6);
  }
  std::vector<float> scores(tokens.size(), 0.0f);
  float score = -1.0f;
  for (const char* text : {"ab", "▁ab", "▁a", "a", "b", "c", "▁", "cc", "ca"}) {
    tokens.emplace_back(text);
    types.push_back(1);
    scores.push_back(score--);
  }
  builder.set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.scores", scores)
      .set("tokenizer.ggml.token_type", types)
      .set("tokenizer.ggml.unknown_token_id", 0u)
      .set("tokenizer.ggml.bos_token_id", 1u)
      .set("tokenizer.ggml.eos_token_id", 2u);
}

GgufBuilder tiny_llama() {
  return tiny_model("llama");
}

GgufBuilder tiny_model(const std::string& architecture) {
  GgufBuilder builder;
  const auto key = [&](const char* suffix) { return architecture + "." + suffix; };
  builder.set("general.architecture", architecture)
      .set("general.name", "tiny")
      .set(key("block_count"), 2u)
      .set(key("context_length"), 64u)
      .set(key("embedding_length"), 32u)
      .set(key("feed_forward_length"), 64u)
      .set(key("attention.head_count"), 4u)
      .set(key("attention.head_count_kv"), 2u)
      .set(key("attention.layer_norm_rms_epsilon"), 1e-5f)
      .set(key("rope.dimension_count"), 8u);
  add_tokenizer(builder);
  builder.tensor("token_embd.weight", TensorType::Q8_0, {32, kTinyVocab})
      .tensor("output_norm.weight", TensorType::F32, {32})
      .tensor("output.weight", TensorType::F16, {32, kTinyVocab});
  for (const std::string block : {"blk.0.", "blk.1."}) {
    builder.tensor(block + "attn_norm.weight", TensorType::F32, {32})
        .tensor(block + "attn_q.weight", TensorType::Q4_0, {32, 32})
        .tensor(block + "attn_k.weight", TensorType::Q8_0, {32, 16})
        .tensor(block + "attn_v.weight", TensorType::Q8_0, {32, 16})
        .tensor(block + "attn_output.weight", TensorType::F16, {32, 32})
        .tensor(block + "ffn_norm.weight", TensorType::F32, {32})
        .tensor(block + "ffn_gate.weight", TensorType::Q8_0, {32, 64})
        .tensor(block + "ffn_up.weight", TensorType::Q8_0, {32, 64})
        .tensor(block + "ffn_down.weight", TensorType::F32, {64, 32});
  }
  return builder;
}

TemporaryFile::TemporaryFile(std::string_view content) {
  path_ = (std::filesystem::temp_directory_path() / "leasehold-test-XXXXXX").string();
  ::close(::mkstemp(path_.data()));
  overwrite(content);
}

TemporaryFile::~TemporaryFile() {
  ::unlink(path_.c_str());
}

void TemporaryFile::overwrite(std::string_view content) const {
  std::ofstream(path_, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::string test_data(const std::string& relative_path) {
  std::string path = test_data_path(relative_path);
  if (path.empty()) {
    WARN("not checked: there is no " << relative_path << "; LEASEHOLD_TEST_DATA names its place");
  }
  return path;
}

}  // namespace leasehold::testing
