/// Builds GGUF files in memory, well-formed unless a test asks otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/model/gguf/gguf_directory.hpp"
#include "kernels/quant/tensor_type.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

/// The bytes of a little-endian value.
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// A length and the text, as GGUF writes strings.
std::string raw_string(std::string_view text);

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::string magic = "GGUF";
  std::uint32_t alignment = 32;  ///< Of the data section; writes no general.alignment by itself.

  /// Adds a value, or replaces the one of that key.
  GgufBuilder& set(std::string_view key, std::uint32_t value);
  GgufBuilder& set(std::string_view key, float value);
  GgufBuilder& set(std::string_view key, bool value);
  GgufBuilder& set(std::string_view key, std::string_view value);
  GgufBuilder& set(std::string_view key, const char* value);
  GgufBuilder& set(std::string_view key, const std::vector<std::string>& values);
  GgufBuilder& set(std::string_view key, const std::vector<float>& values);
  GgufBuilder& set(std::string_view key, const std::vector<std::int32_t>& values);
  GgufBuilder& set_raw(std::string_view key, GgufType type, std::string bytes);
  /// The same key once more, which no well-formed file has.
  GgufBuilder& add_duplicate(std::string_view key, std::uint32_t value);
  GgufBuilder& remove(std::string_view key);

  /// Adds a tensor, or replaces the one of that name; its bytes count up from its position.
  GgufBuilder& tensor(std::string_view name, TensorType type, std::vector<std::uint64_t> shape);
  /// An F32 vector of these numbers.
  GgufBuilder& vector(std::string_view name, const std::vector<float>& numbers);
  GgufBuilder& add_duplicate_tensor(std::string_view name, TensorType type,
                                    std::vector<std::uint64_t> shape);
  GgufBuilder& remove_tensor(std::string_view name);
  /// Writes this number where the tensor's type or offset belongs.
  GgufBuilder& override_type(std::string_view name, std::uint32_t number);
  GgufBuilder& override_offset(std::string_view name, std::uint64_t offset);

  std::string bytes() const;

 private:
  struct Entry {
    std::string key;
    GgufType type;
    std::string bytes;
  };
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<std::uint64_t> shape;
    std::uint32_t written_type;
    std::uint64_t written_offset;
    std::string bytes = {};  ///< Empty: bytes that count up.
  };
  static constexpr std::uint64_t kInSequence = UINT64_MAX;

  Tensor& named(std::string_view name);

  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
};

/// A small llama that passes every check: 2 layers, 32 wide, 4 heads over 2 kv heads, a feed
/// forward of 64, and the tokenizer of `with_tokenizer` (its n_vocab tokens).
GgufBuilder tiny_llama();
/// Its metadata under another architecture's name. Tensors stay a llama's.
GgufBuilder tiny_model(const std::string& architecture);
inline constexpr std::uint32_t kTinyVocab = 3 + 256 + 9;

/// <unk> <s> </s>, all 256 bytes, then ab ▁ab ▁a a b c ▁ cc ca with scores -1, -2, … -9.
void add_tokenizer(GgufBuilder& builder);

/// A temporary file; the destructor deletes it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  void overwrite(std::string_view content) const;

 private:
  std::string path_;
};

/// A path under LEASEHOLD_TEST_DATA; empty, with a notice in the log, when there is none.
std::string test_data(const std::string& relative_path);

}  // namespace leasehold::testing
