#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/weights_layout.hpp"
#include "kernels/numerics/f16.hpp"
#include "tests/support/plain_formats.hpp"
#include "tests/support/test_paths.hpp"
#include "tools/make_model/gguf_header.hpp"
#include "tools/make_model/model_shape.hpp"
#include "tools/make_model/tensor_plan.hpp"
#include "tools/make_model/vocabulary.hpp"
#include "tools/make_model/weights.hpp"
#include "tools/make_model/write_model.hpp"

using namespace leasehold;
using namespace leasehold::make_model;

namespace {

/// A temporary folder, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("make_model-{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

ModelRequest tiny(TensorType type, std::uint64_t seed = 1) {
  return {.shape = *named_shape("tiny"), .type = type, .seed = seed};
}

std::string written(const ScratchFolder& folder, const ModelRequest& request) {
  const std::string path = folder.file("model.gguf");
  REQUIRE(write_model(request, path, [](auto, auto) {}));
  return file_bytes(path);
}

/// Unpacks block by block, written from the format description.
std::vector<float> unpacked(TensorType type, const std::vector<std::byte>& packed) {
  std::vector<float> out;
  const std::size_t block_bytes = block_shape(type).size_bytes;
  for (std::size_t at = 0; at < packed.size(); at += block_bytes) {
    Half half;
    std::memcpy(&half, &packed[at], sizeof half);
    const float scale = f32_from_f16(half);
    for (std::size_t i = 0; i < 32; ++i) {
      if (type == TensorType::Q8_0) {
        out.push_back(scale * static_cast<float>(static_cast<std::int8_t>(packed[at + 2 + i])));
      } else {
        const auto pair = std::to_integer<int>(packed[at + 2 + i % 16]);
        out.push_back(scale * static_cast<float>((i < 16 ? pair & 15 : pair >> 4) - 8));
      }
    }
  }
  return out;
}

PlannedTensor matrix(std::uint64_t rows, std::uint64_t columns) {
  return {.name = "w", .rows = rows, .columns = columns, .type = TensorType::F32};
}

}  // namespace

TEST_CASE("make_model: the same arguments give the same bytes, another seed gives different ones") {
  const ScratchFolder folder;
  const std::string first = written(folder, tiny(TensorType::Q4_0));
  CHECK(first == written(folder, tiny(TensorType::Q4_0)));
  CHECK(first != written(folder, tiny(TensorType::Q4_0, 2)));
}

TEST_CASE("make_model: a file has the size of its header and tensors") {
  const ScratchFolder folder;
  for (const TensorType type : {TensorType::F32, TensorType::F16, TensorType::Q8_0,
                                TensorType::Q4_0, TensorType::IQ4_NL, TensorType::MXFP4}) {
    const ModelRequest request = tiny(type);
    const auto plan = plan_tensors(request);
    const std::string file = written(folder, request);
    CHECK(file.substr(0, 4) == "GGUF");
    CHECK(file.size() == gguf_header(request, plan).size() + data_size_bytes(plan));
  }
}

TEST_CASE("make_model: every tensor is aligned and starts after the previous one") {
  ModelRequest request = tiny(TensorType::Q8_0);
  request.architecture = "qwen2";
  std::uint64_t end = 0;
  for (const PlannedTensor& tensor : plan_tensors(request)) {
    CHECK(tensor.offset % kAlignment == 0);
    CHECK(tensor.offset >= end);
    end = tensor.offset + tensor.size_bytes();
  }
}

TEST_CASE("make_model: only a tied model has no output layer") {
  const auto has_output = [](std::string_view shape) {
    for (const auto& tensor : plan_tensors({.shape = *named_shape(shape)}))
      if (tensor.name == "output.weight") return true;
    return false;
  };
  CHECK_FALSE(has_output("0.5b"));
  CHECK(has_output("1b"));
}

TEST_CASE("make_model: a model in parts has the same tensors, each in one file") {
  ModelRequest request = tiny(TensorType::Q8_0);
  const auto whole = plan_tensors(request);
  const auto parts = cut_plan(whole, 4);
  REQUIRE(parts.size() == 4);
  std::size_t number = 0;
  for (const auto& part : parts) {
    std::uint64_t end = 0;
    CHECK_FALSE(part.empty());
    for (const PlannedTensor& tensor : part) {
      CHECK(tensor.name == whole[number].name);
      CHECK(tensor.number == number++);
      CHECK(tensor.offset == end);
      end = align_up(end + tensor.size_bytes());
    }
  }
  CHECK(number == whole.size());

  const ScratchFolder folder;
  request.parts = 4;
  const auto written = write_model(request, folder.file("m.gguf"), [](auto, auto) {});
  REQUIRE(written);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < 4; ++i)
    bytes += file_bytes(part_path(folder.file("m.gguf"), i, 4)).size();
  CHECK(bytes == *written);
  CHECK(part_path("m.gguf", 2, 4) == "m-00003-of-00004.gguf");
  CHECK(part_path("m.gguf", 0, 1) == "m.gguf");
}

TEST_CASE("make_model: a model with experts has a router and stacked matrices") {
  ModelRequest request = tiny(TensorType::F32);
  request.architecture = "qwen2moe";
  request.shape.experts = 8;
  request.shape.experts_used = 2;
  request.shape.expert_ffn = 32;
  REQUIRE(check(request));
  bool has_dense = false;
  for (const PlannedTensor& tensor : plan_tensors(request)) {
    has_dense = has_dense || tensor.name == "blk.0.ffn_up.weight";
    if (tensor.name == "blk.1.ffn_gate_inp.weight") CHECK(tensor.rows == 8);
    if (tensor.name != "blk.1.ffn_down_exps.weight") continue;
    CHECK(tensor.columns == 32);
    CHECK(tensor.rows == 8 * 64);
    CHECK(tensor.matrices == 8);
  }
  CHECK_FALSE(has_dense);
}

TEST_CASE(
    "make_model: a worker loads a model of every architecture, with and without what it may lack") {
  const ScratchFolder folder;
  std::istringstream names(architecture_names());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    ModelRequest request = tiny(TensorType::MXFP4);
    request.architecture = *architecture_from(name);
    request.shape.head_width = 64;
    request.shape.rope_width = 32;
    if (!request.row().experts.empty()) {
      request.shape.experts = 4;
      request.shape.experts_used = 2;
      request.shape.dense_layers = request.row().feed_forward.empty() ? 0 : 1;
    }
    for (const bool has_optional : {false, true}) {
      CAPTURE(name, has_optional);
      request.has_optional = has_optional;
      const std::string path = folder.file(name + ".gguf");
      REQUIRE(write_model(request, path, [](auto, auto) {}));
      const auto file = GgufFile::open(path);
      REQUIRE(file.has_value());
      const auto config = read_config(*file);
      REQUIRE(config.has_value());
      REQUIRE(make_weights_layout(*file, *config).has_value());
      const bool is_delta = request.row().mixers.mixer == Mixer::DeltaNet;
      CHECK(file_bytes(path).contains("rope.dimension_sections") ==
            (is_delta || name.starts_with("qwen3vl")));
    }
  }
}

TEST_CASE("make_model: weights do not depend on the batch size") {
  const PlannedTensor tensor = matrix(4, 64);
  std::vector<float> whole(256);
  std::vector<float> parts(256);
  fill_weights(tensor, 7, 0, whole);
  fill_weights(tensor, 7, 0, std::span(parts).first(64));
  fill_weights(tensor, 7, 64, std::span(parts).subspan(64));
  CHECK(whole == parts);
}

TEST_CASE("make_model: a matrix has mean 0 and deviation 1 / sqrt(columns)") {
  const PlannedTensor tensor = matrix(256, 64);
  std::vector<float> weights(256 * 64);
  fill_weights(tensor, 3, 0, weights);
  double sum = 0;
  double squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  const auto count = static_cast<double>(weights.size());
  CHECK(std::abs(sum / count) < 0.005);
  CHECK(std::sqrt(squares / count) * 8.0 == Approx(1.0).epsilon(0.02));
}

TEST_CASE("make_model: a packed weight differs by at most one step from the weight") {
  std::vector<float> weights(64 * 8);
  fill_weights(matrix(8, 64), 5, 0, weights);
  for (const TensorType type : {TensorType::Q8_0, TensorType::Q4_0}) {
    std::vector<std::byte> packed(row_size_bytes(type, weights.size()));
    pack_weights(type, weights, packed);
    const std::vector<float> back = unpacked(type, packed);
    REQUIRE(back.size() == weights.size());
    for (std::size_t block = 0; block < weights.size(); block += 32) {
      float largest = 0;
      for (std::size_t i = block; i < block + 32; ++i)
        largest = std::max(largest, std::fabs(weights[i]));
      // Q8_0 rounds by half a step, plus the rounding of its half-precision scale, 127 times 2^-11.
      // Q4_0 has no +8, so the side opposite to the extreme can be a whole step off.
      const float step = type == TensorType::Q8_0 ? 0.57f * largest / 127 : 1.01f * largest / 8;
      for (std::size_t i = block; i < block + 32; ++i)
        CHECK(std::fabs(back[i] - weights[i]) <= step);
    }
  }
}

TEST_CASE("make_model: a weight in other types is as near as its block's range allows") {
  std::vector<float> weights(256 * 16);
  fill_weights(matrix(16, 256), 5, 0, weights);
  // Steps of the largest magnitude: one for Q5_0 and Q6_K, whose codes are not symmetric, and half
  // of a step of the range for Q4_K; scales of 6 and 8 bits add some. The value opposite to IQ4's
  // extreme is 113 of 127, and MXFP4 has no value between 6 and 8.
  const std::pair<TensorType, float> kSteps[] = {
      {TensorType::Q5_0, 1.01f / 16},    {TensorType::Q4_K, 2.0f / 30 + 0.04f},
      {TensorType::Q6_K, 1.2f / 32},     {TensorType::IQ4_NL, 15.0f / 127},
      {TensorType::IQ4_XS, 17.0f / 127}, {TensorType::MXFP4, 2.01f / 8}};
  for (const auto& [type, share] : kSteps) {
    std::vector<std::byte> packed(row_size_bytes(type, weights.size()));
    pack_weights(type, weights, packed);
    const std::vector<double> back =
        testing::plain_values(static_cast<std::uint32_t>(type), packed.data(), weights.size());
    const std::size_t size = block_shape(type).elements;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      float largest = 0;
      for (std::size_t k = i / size * size; k < (i / size + 1) * size; ++k)
        largest = std::max(largest, std::fabs(weights[k]));
      CAPTURE(name(type), i, weights[i], back[i]);
      REQUIRE(std::fabs(back[i] - weights[i]) <= share * largest);
    }
  }
}

TEST_CASE("make_model: a block of zeros packs to zeros") {
  const std::vector<float> zeros(256);
  for (const TensorType type :
       {TensorType::Q8_0, TensorType::Q4_0, TensorType::Q5_0, TensorType::Q4_K, TensorType::Q6_K,
        TensorType::IQ4_XS, TensorType::MXFP4}) {
    std::vector<std::byte> packed(row_size_bytes(type, 256));
    pack_weights(type, zeros, packed);
    for (const double weight :
         testing::plain_values(static_cast<std::uint32_t>(type), packed.data(), 256))
      CHECK(weight == 0.0);
  }
}

TEST_CASE(
    "make_model: a mix has finer types where they matter, and smaller blocks where they fit") {
  const auto type_in = [](const char* shape, const std::string& name) {
    const WeightType mix = *weight_type_from("q4_k_m");
    const ModelRequest request{
        .shape = *named_shape(shape), .type = mix.type, .is_mix = mix.is_mix};
    REQUIRE(check(request));
    for (const PlannedTensor& tensor : plan_tensors(request))
      if (tensor.name == name) return tensor.type;
    return TensorType::F32;
  };
  CHECK(type_in("1b", "token_embd.weight") == TensorType::Q4_K);
  CHECK(type_in("1b", "output.weight") == TensorType::Q6_K);
  CHECK(type_in("1b", "blk.0.attn_v.weight") == TensorType::Q6_K);
  CHECK(type_in("1b", "blk.2.attn_v.weight") == TensorType::Q4_K);
  CHECK(type_in("1b", "blk.4.ffn_down.weight") == TensorType::Q6_K);
  CHECK(type_in("1b", "blk.21.ffn_down.weight") == TensorType::Q6_K);
  CHECK(type_in("1b", "blk.0.ffn_up.weight") == TensorType::Q4_K);
  CHECK(type_in("0.5b", "token_embd.weight") == TensorType::Q8_0);
  CHECK(type_in("0.5b", "blk.0.attn_v.weight") == TensorType::Q8_0);
  CHECK(type_in("0.5b", "blk.0.ffn_up.weight") == TensorType::Q5_0);
  CHECK(type_in("0.5b", "blk.0.ffn_down.weight") == TensorType::Q6_K);
  CHECK(type_in("0.5b", "blk.3.ffn_down.weight") == TensorType::Q4_K);
}

TEST_CASE("make_model: every token has its own text, and every word joins from smaller ones") {
  std::set<std::string> texts;
  constexpr std::uint32_t kVocab = 60'000;
  for (std::uint32_t token = 0; token < kVocab; ++token) {
    const std::string text = token_text(token);
    if (token_kind(token) == TokenKind::Normal && text.size() >= 2 && text != "\u2581") {
      const bool is_joined = texts.contains(text.substr(0, text.size() - 2)) ||
                             texts.contains(text.substr(0, text.size() - 1));
      CHECK(is_joined);
    }
    CHECK(texts.insert(text).second);
  }
}

TEST_CASE("make_model: each byte-level merge joins two tokens of the vocabulary to a third") {
  for (const auto& [n_tokens, n_merges] :
       {std::pair(259u, 0u), {400u, 86u}, {456u, 198u}, {457u, 200u}, {40'000u, 39'743u}}) {
    std::set<std::string> texts;
    for (std::uint32_t token = 0; token < n_tokens; ++token)
      CHECK(texts.insert(byte_level_text(token)).second);
    std::set<std::string> words;
    for (const std::string& merge : byte_level_merges(n_tokens)) {
      const auto space = merge.find(' ');
      const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
      CHECK((texts.contains(left) && texts.contains(right) && texts.contains(left + right)));
      words.insert(left + right);
    }
    CHECK(words.size() == n_merges);
  }
  CHECK(byte_level_text(0) + byte_level_text(' ') == "\u0100\u0120");
  CHECK(byte_level_text(0xad) + byte_level_text(0xff) == "\u0143\u00ff");
}

TEST_CASE("make_model: an invalid shape is refused with the option to change") {
  ModelRequest request = tiny(TensorType::Q8_0);
  SECTION("heads that do not divide the width") {
    request.shape.heads = 5;
  }
  SECTION("key heads that do not divide the heads") {
    request.shape.kv_heads = 3;
  }
  SECTION("a row that is not a whole number of blocks") {
    request.shape.ffn = 161;
  }
  SECTION("a row that is not a whole number of large blocks") {
    request.type = TensorType::Q4_K;
  }
  SECTION("a vocabulary without room for the bytes") {
    request.shape.vocab = 258;
  }
  SECTION("experts in an architecture without them") {
    request.architecture = "qwen2";
    request.shape.experts = 4;
  }
  SECTION("an architecture that needs experts, without any") {
    request.architecture = "qwen3moe";
  }
  SECTION("more experts used than exist") {
    request.shape.experts = 4;
    request.shape.experts_used = 5;
  }
  SECTION("heads of an odd width") {
    request.shape.head_width = 15;
  }
  SECTION("zero parts") {
    request.parts = 0;
  }
  SECTION("missing sizes") {
    request.shape = *named_shape("custom");
  }
  const Result<void> checked = check(request);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == Errc::BadRequest);
  CHECK(checked.error().detail.find("--") != std::string::npos);
}

TEST_CASE("make_model: an unwritable path is an error and leaves no file") {
  const ScratchFolder folder;
  const auto missing =
      write_model(tiny(TensorType::F32), folder.file("no/such/model.gguf"), [](auto, auto) {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::FileNotFound);

  std::filesystem::create_directories(folder.file("taken"));
  const auto taken = write_model(tiny(TensorType::F32), folder.file("taken"), [](auto, auto) {});
  REQUIRE_FALSE(taken);
  CHECK_FALSE(std::filesystem::exists(folder.file("taken.partial")));
}
