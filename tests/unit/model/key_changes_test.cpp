/// Each metadata key of each architecture, missing and with values that no model has.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "kernels/model/architecture.hpp"
#include "kernels/model/weights_layout.hpp"
#include "tests/support/seed_model.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/model/config_cases.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// The file of an architecture's smallest model.
std::string model_bytes(const Architecture& row) {
  const TemporaryDirectory folder = TemporaryDirectory::create("seed").value();
  const std::string path = folder.file("m.gguf");
  REQUIRE(make_model::write_model(seed_request(row), path, [](auto, auto) {}).has_value());
  return bytes_of(path);
}

struct Read {
  ModelConfig config;
  WeightsLayout layout;
};
Result<Read> read(const std::string& bytes) {
  const TemporaryFile path(bytes);
  const GgufFile file = TRY(GgufFile::open(path.path()));
  ModelConfig config = TRY(read_config(file));
  WeightsLayout layout = TRY(make_weights_layout(file, config));
  return Read{std::move(config), std::move(layout)};
}

/// A key with its value in the file.
struct KeyAt {
  std::string key;
  GgufValue value;
};

std::vector<KeyAt> keys_of(const std::string& bytes, std::string_view architecture) {
  const auto directory = read_gguf_directory(std::as_bytes(std::span(bytes)), "m.gguf");
  REQUIRE(directory.has_value());
  std::vector<KeyAt> keys;
  for (const auto& [key, value] : directory->metadata)
    if (key.starts_with(std::string(architecture) + ".")) keys.push_back({key, value});
  return keys;
}

template <class T>
std::string with_value(std::string bytes, const KeyAt& at, T value) {
  std::memcpy(bytes.data() + at.value.offset, &value, sizeof value);
  return bytes;
}

std::string without_key(std::string bytes, const KeyAt& at) {
  const std::size_t found = bytes.find(raw_string(at.key));
  bytes[found + raw_string(at.key).size() - 1] = '~';
  return bytes;
}

/// The value, or the elements of a list, as another type of the same size.
std::string with_other_type(std::string bytes, const KeyAt& at) {
  const bool is_list = at.value.type == GgufType::Array;
  const auto type = at.value.element_type;
  const GgufType other = type == GgufType::Float32 ? GgufType::Uint32
                         : type == GgufType::Bool  ? GgufType::Int8
                                                   : GgufType::Float32;
  const std::uint64_t tag = at.value.offset - (is_list ? sizeof(std::uint64_t) : 0) - sizeof(other);
  std::memcpy(bytes.data() + tag, &other, sizeof other);
  return bytes;
}

/// A list without its last element.
std::string with_shorter_list(std::string bytes, const KeyAt& at) {
  const std::uint64_t count = at.value.count - 1;
  const std::size_t element = at.value.element_type == GgufType::Bool ? 1 : 4;
  std::memcpy(bytes.data() + at.value.offset - sizeof count, &count, sizeof count);
  bytes.erase(at.value.offset + count * element, element);
  return bytes + std::string(64, '\0');  // the tensors may begin earlier, and end where they did
}

/// Changes that fit the type of the value.
std::vector<std::string> changes(const std::string& bytes, const KeyAt& at) {
  std::vector<std::string> all{without_key(bytes, at)};
  if (at.value.type == GgufType::String) return all;
  if (at.value.type == GgufType::Array) all.push_back(with_shorter_list(bytes, at));
  if (at.value.element_type == GgufType::Float32)
    for (const float value : {0.0f, -1.0f, 1e38f, kNan})
      all.push_back(with_value(bytes, at, value));
  if (at.value.element_type == GgufType::Bool)
    all.push_back(with_value(bytes, at, std::uint8_t{2}));
  if (at.value.element_type == GgufType::Uint32 || at.value.element_type == GgufType::Int32)
    for (const std::uint32_t value : {0u, 1u, 3u, 1u << 20, 0x7FFF'FFFFu, 0xFFFF'FFFFu})
      all.push_back(with_value(bytes, at, value));
  return all;
}

/// What is wrong with an error, or nothing: it is typed and names a key or a tensor.
std::string complaint(const Error& error, std::string_view architecture) {
  const bool is_typed = error.code == Errc::FileCorrupt || error.code == Errc::UnsupportedModel ||
                        error.code == Errc::MissingWeight;
  const bool names_it = error.detail.contains(std::string(architecture) + ".") ||
                        error.detail.contains("tensor") || error.detail.contains("weight");
  return is_typed && names_it ? "" : fmt::format("{}: {}", name(error.code), error.detail);
}

}  // namespace

TEST_CASE(
    "config: every key of every architecture that no model has is refused, or has no effect") {
  for (const Architecture& row : architectures()) {
    const std::string bytes = model_bytes(row);
    const auto original = read(bytes);
    if (!original) FAIL(row.name << ": " << original.error().detail);
    for (const KeyAt& at : keys_of(bytes, row.name)) {
      CAPTURE(at.key);
      for (const std::string& changed : changes(bytes, at)) {
        const auto outcome = read(changed);
        if (!outcome) CHECK(complaint(outcome.error(), row.name) == "");
      }
      if (at.value.type == GgufType::String) continue;
      const auto other = read(with_other_type(bytes, at));
      if (other) CHECK(other->config == original->config);
      if (!other) CHECK(complaint(other.error(), row.name) == "");
    }
  }
}

TEST_CASE("fuzz: the seeds of model files are those of every architecture") {
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    const std::string path = source_dir() + "/tests/fuzz/corpus/gguf_fuzz/" + std::string(row.name);
    CHECK((bytes_of(path) == model_bytes(row)));
  }
}

}  // namespace leasehold::testing
