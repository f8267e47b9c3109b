/// What is refused in a file or folder of an adapter, and how.
#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kernels/model/gguf/content_digest.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/unit/worker/adapter/adapter_cases.hpp"

namespace leasehold::testing {
namespace {

using Catch::Matchers::Contains;
using make_model::AdapterForm;

void check_error(const Error& error, Errc code, const std::string& why) {
  CHECK(error.code == code);
  CHECK_THAT(error.detail, Contains(why));
}

constexpr const char* kQueryA = "blk.0.attn_q.weight.lora_a";
constexpr const char* kQueryB = "blk.0.attn_q.weight.lora_b";

/// An adapter of one matrix of the small model: q of layer 0 with rank 4.
GgufBuilder one_matrix(const char* architecture = "llama") {
  GgufBuilder builder;
  builder.set("general.type", "adapter").set("general.architecture", architecture);
  builder.set("adapter.type", "lora").set("adapter.lora.alpha", 8.0F);
  builder.tensor(kQueryA, TensorType::F32, {32, 4}).tensor(kQueryB, TensorType::F32, {4, 32});
  return builder;
}

/// The file as a folder's, changed by the caller.
nlohmann::ordered_json config_of(const AdapterFolder& folder) {
  return nlohmann::ordered_json::parse(bytes_of(folder.path("a/adapter_config.json")));
}
void set_config(const AdapterFolder& folder, const nlohmann::ordered_json& config) {
  folder.write("a/adapter_config.json", config.dump());
}

/// The bytes of a safetensors file, in parts.
struct Safetensors {
  nlohmann::ordered_json header;
  std::string data;

  explicit Safetensors(const std::string& bytes) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    header = nlohmann::ordered_json::parse(bytes.substr(sizeof size, size));
    data = bytes.substr(sizeof size + size);
  }
  std::string bytes() const {
    const std::string text = header.dump();
    return raw(std::uint64_t{text.size()}) + text + data;
  }
};

std::string with_bits(std::string bytes, std::size_t at, std::uint16_t bits) {
  std::memcpy(bytes.data() + at, &bits, sizeof bits);
  return bytes;
}

bool is_typed(Errc code) {
  return code == Errc::FileCorrupt || code == Errc::UnsupportedModel || code == Errc::MissingWeight;
}

}  // namespace

TEST_CASE("adapter: a GGUF file for another model or of another kind is refused") {
  const AdapterFolder folder;
  const auto refused = [&](const GgufBuilder& builder, Errc code, const std::string& why) {
    folder.write("a.gguf", builder.bytes());
    check_error(folder.refusal("a.gguf"), code, why);
  };
  folder.write("a.gguf", one_matrix().bytes());
  REQUIRE(folder.open("a.gguf"));
  constexpr Errc kOther = Errc::UnsupportedModel;
  refused(one_matrix("qwen2"), kOther, "general.architecture is \"qwen2\"");
  refused(one_matrix().set("general.type", "model"), kOther, "general.type is \"model\"");
  refused(one_matrix().remove("general.type"), kOther, "general.type is \"\"");
  refused(one_matrix().set("adapter.type", "control"), kOther, "adapter.type is \"control\"");
  refused(one_matrix().set("adapter.alora.invocation_tokens", std::vector<std::int32_t>{1}), kOther,
          "adapter.alora.invocation_tokens");
  refused(one_matrix().set("split.count", 2u), kOther, "one of 2 files");
  refused(one_matrix().set("adapter.lora.alpha", 8u), kOther, "adapter.lora.alpha");
  refused(one_matrix().set("adapter.lora.alpha", std::numeric_limits<float>::infinity()),
          Errc::FileCorrupt, "adapter.lora.alpha is inf");
}

TEST_CASE("adapter: an alpha of 0, and none, mean a scale of 1 in a GGUF file") {
  const AdapterFolder folder;
  folder.write("a.gguf", one_matrix().bytes());
  CHECK(folder.open("a.gguf")->weights().front().scale == 2.0F);
  folder.write("a.gguf", one_matrix().set("adapter.lora.alpha", 0.0F).bytes());
  CHECK(folder.open("a.gguf")->weights().front().scale == 1.0F);
  folder.write("a.gguf", one_matrix().remove("adapter.lora.alpha").bytes());
  CHECK(folder.open("a.gguf")->weights().front().scale == 1.0F);
}

TEST_CASE("adapter: tensors that do not fit the model are refused by name") {
  const AdapterFolder folder;
  const auto refused = [&](const GgufBuilder& builder, Errc code, const std::string& why) {
    folder.write("a.gguf", builder.bytes());
    check_error(folder.refusal("a.gguf"), code, why);
  };
  constexpr Errc kOther = Errc::UnsupportedModel;
  const auto f32 = TensorType::F32;
  for (const std::string& name :
       {std::string("output.weight.lora_a"), std::string("blk.0.ffn_gate_exps.weight.lora_a"),
        std::string("blk.0.attn_q.weight"), std::string("blk.00.attn_q.weight.lora_a"),
        std::string("blk.0.attn_qkv.weight.lora_b"), std::string("token_embd.weight.lora_a")})
    refused(one_matrix().tensor(name, f32, {32, 4}), kOther, "tensor " + name);
  refused(one_matrix()
              .tensor("blk.2.attn_q.weight.lora_a", f32, {32, 4})
              .tensor("blk.2.attn_q.weight.lora_b", f32, {4, 32}),
          kOther, "tensor blk.2.attn_q.weight.lora_a changes a weight");
  refused(one_matrix().tensor(kQueryA, f32, {64, 4}), kOther,
          "is for a weight 64 columns wide, and the model's is 32");
  refused(one_matrix().tensor(kQueryB, f32, {4, 16}), kOther,
          "is for a weight 16 rows wide, and the model's is 32");
  refused(one_matrix().tensor(kQueryA, TensorType::Q4_0, {32, 4}), kOther, "has type Q4_0");
  refused(one_matrix().tensor(kQueryB, f32, {5, 32}), Errc::FileCorrupt,
          "lora_b has rank 5, and blk.0.attn_q.weight.lora_a has rank 4");
  refused(one_matrix().remove_tensor(kQueryA), Errc::MissingWeight, "has no matrix A beside it");
  refused(one_matrix().remove_tensor(kQueryB), Errc::MissingWeight, "has no matrix B beside it");
  refused(one_matrix().remove_tensor(kQueryB).remove_tensor(kQueryA), Errc::MissingWeight,
          "has no matrices");
}

TEST_CASE("adapter: a rank above the worker's limit is refused, and one at it is read") {
  const AdapterFolder folder;
  folder.write("a.gguf", one_matrix().bytes());
  check_error(folder.refusal("a.gguf", 3), Errc::UnsupportedModel,
              "tensor blk.0.attn_q.weight.lora_a has rank 4; this worker takes up to 3 "
              "(--max-adapter-rank)");
  CHECK(folder.open("a.gguf", 4));
}

TEST_CASE("adapter: fused matrices and experts have no adapters") {
  const AdapterFolder fused("phi3");
  GgufBuilder builder = one_matrix("phi3");
  builder.tensor("blk.0.attn_qkv.weight.lora_a", TensorType::F32, {32, 4});
  fused.write("a.gguf", builder.bytes());
  check_error(fused.refusal("a.gguf"), Errc::UnsupportedModel, "blk.0.attn_qkv.weight.lora_a");
  fused.write("a.gguf", one_matrix("phi3")
                            .tensor("blk.0.ffn_up.weight.lora_a", TensorType::F32, {32, 4})
                            .tensor("blk.0.ffn_up.weight.lora_b", TensorType::F32, {4, 128})
                            .bytes());
  check_error(fused.refusal("a.gguf"), Errc::UnsupportedModel,
              "blk.0.ffn_up.weight.lora_b is for a weight 128 rows wide, and the model's is 64");

  make_model::ModelRequest request = small_model("qwen3moe");
  request.shape.experts = 2;
  request.shape.experts_used = 1;
  const AdapterFolder experts("qwen3moe", request);
  experts.write("a.gguf", one_matrix("qwen3moe")
                              .tensor("blk.0.ffn_up.weight.lora_a", TensorType::F32, {32, 4})
                              .tensor("blk.0.ffn_up.weight.lora_b", TensorType::F32, {4, 64})
                              .bytes());
  check_error(experts.refusal("a.gguf"), Errc::UnsupportedModel, "blk.0.ffn_up.weight.lora_a");
}

TEST_CASE("adapter: a value that is not finite is refused when its matrix is read") {
  const AdapterFolder folder;
  const auto type = GENERATE(TensorType::F32, TensorType::F16, TensorType::BF16, TensorType::Q8_0);
  CAPTURE(name(type));
  folder.make("a.gguf", type, AdapterForm::Gguf);
  const GgufFile gguf = GgufFile::open(folder.path("a.gguf")).value();
  const GgufTensor& tensor = *gguf.find("blk.1.ffn_up.weight.lora_a");
  // The upper half of an infinite float, and of a bfloat; in Q8_0 the scale of the first block.
  const std::uint16_t bits = type == TensorType::F32 || type == TensorType::BF16 ? 0x7F80 : 0x7C00;
  const std::size_t at = tensor.offset + (type == TensorType::F32 ? 2 : 0);
  const std::string bytes = bytes_of(folder.path("a.gguf"));
  for (const auto wrong : {bits, static_cast<std::uint16_t>(bits | 0x8001)}) {
    folder.write("a.gguf", with_bits(bytes, at, wrong));
    auto file = folder.open("a.gguf");
    REQUIRE(file);
    const auto matrices = read_all(*file);
    REQUIRE_FALSE(matrices);
    check_error(matrices.error(), Errc::FileCorrupt,
                "tensor blk.1.ffn_up.weight.lora_a has a value that is infinite or not a number");
  }
}

TEST_CASE("adapter: a folder of PEFT must agree with its config") {
  const AdapterFolder folder;
  folder.make("a", TensorType::F16, AdapterForm::Peft);
  const auto original = config_of(folder);
  const auto refused = [&](const char* key, const nlohmann::ordered_json& value, Errc code,
                           const std::string& why) {
    auto config = original;
    config[key] = value;
    set_config(folder, config);
    check_error(folder.refusal("a"), code, why);
  };
  refused("r", 31, Errc::FileCorrupt, "has rank 32, and adapter_config.json says 31");
  refused("rank_pattern", nlohmann::ordered_json::object(), Errc::FileCorrupt,
          "q_proj.lora_A.weight has rank 4, and adapter_config.json says 32");
  refused("target_modules", {"q_proj"}, Errc::FileCorrupt, "is not among the target_modules");
  refused("layers_to_transform", {0}, Errc::FileCorrupt,
          "model.layers.1.self_attn.q_proj.lora_A.weight is not among");
  refused("use_dora", true, Errc::UnsupportedModel, "a/adapter_config.json: use_dora is set");
  refused("task_type", std::string(1 << 20, 'x'), Errc::FileCorrupt,
          "a config has 1048576 at most");
  set_config(folder, original);
  REQUIRE(folder.open("a"));
  std::filesystem::remove(folder.path("a/adapter_config.json"));
  check_error(folder.refusal("a"), Errc::FileNotFound, "in a: adapter_config.json");
}

TEST_CASE("adapter: tensors of PEFT that this build cannot compute are refused by name") {
  const AdapterFolder folder;
  folder.make("a", TensorType::F32, AdapterForm::Peft);
  const std::string path = "a/adapter_model.safetensors";
  const std::string original = bytes_of(folder.path(path));
  const std::string from = "model.layers.0.self_attn.q_proj.lora_A.weight";
  for (const std::string& to :
       {std::string("model.layers.0.self_attn.q_proj.lora_magnitude_vector"),
        std::string("model.lm_head.lora_A.weight"), std::string("model.embed.lora_embedding_A"),
        std::string("model.layers.0.self_attn.qkv_proj.lora_A.weight"),
        std::string("model.layers.0.mlp.experts.0.up_proj.lora_A.weight")}) {
    Safetensors file(original);
    auto entry = file.header["base_model.model." + from];
    file.header.erase("base_model.model." + from);
    file.header["base_model.model." + to] = entry;
    folder.write(path, file.bytes());
    check_error(folder.refusal("a"), Errc::UnsupportedModel,
                "base_model.model." + to.substr(0, 30));
  }
  Safetensors without(original);
  without.header["base_model.model." + from]["shape"] = {2, 64};
  folder.write(path, without.bytes());
  check_error(folder.refusal("a"), Errc::UnsupportedModel, "is for a weight 64 columns wide");
}

TEST_CASE("adapter: a path that leaves the directory or passes a link is refused") {
  const AdapterFolder folder;
  folder.make("a.gguf", TensorType::F16, AdapterForm::Gguf);
  folder.make("peft", TensorType::F16, AdapterForm::Peft);
  std::filesystem::create_directory(folder.path("inside"));
  std::filesystem::create_symlink("../a.gguf", folder.path("inside/link.gguf"));
  std::filesystem::create_directory_symlink(folder.path("peft"), folder.path("folder-link"));
  CHECK(folder.open("./inside/.//peft").error().code == Errc::FileNotFound);
  CHECK(folder.open(".//a.gguf"));
  CHECK(folder.open("peft/"));
  for (const std::string& path :
       {std::string("../") +
            std::filesystem::path(folder.path(".")).parent_path().filename().string() + "/a.gguf",
        folder.path("a.gguf"), std::string("/etc/passwd"), std::string("inside/../a.gguf"),
        std::string("folder-link/adapter_config.json"), std::string("inside/link.gguf"),
        std::string("folder-link"), std::string(""), std::string("a.gguf\0x", 8)}) {
    CAPTURE(path);
    CHECK(folder.refusal(path).code == Errc::BadRequest);
  }
  CHECK(folder.refusal("none.gguf").code == Errc::FileNotFound);
  CHECK(folder.refusal("a.gguf/x").code == Errc::FileNotFound);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(folder.refusal("pipe").code == Errc::FileCorrupt);
  folder.write("empty", "");
  CHECK(folder.refusal("empty").code == Errc::FileCorrupt);
  const std::string weights = folder.path("peft/adapter_model.safetensors");
  std::filesystem::rename(weights, folder.path("moved"));
  std::filesystem::create_symlink("../moved", weights);
  check_error(folder.refusal("peft"), Errc::BadRequest,
              "in peft: adapter_model.safetensors passes");
}

TEST_CASE("adapter: a file far larger than an adapter of this model is not read") {
  const AdapterFolder folder;
  folder.make("a.gguf", TensorType::F16, AdapterForm::Gguf);
  std::filesystem::resize_file(folder.path("a.gguf"), 1ull << 40);
  check_error(folder.refusal("a.gguf"), Errc::UnsupportedModel, "has 1099511627776 bytes");
}

namespace {

/// Adapters of it are larger than what is kept of a file.
make_model::ModelRequest wide_model() {
  make_model::ModelRequest wide = small_model("llama");
  wide.shape.embd = 256;
  wide.shape.ffn = 4096;
  return wide;
}
constexpr make_model::TargetRanks kHighRanks{32, 32, 32, 32, 32, 32, 32};

}  // namespace

TEST_CASE("adapter: a file written while it is read is found out by its bytes, not by its times") {
  const AdapterFolder folder("llama", wide_model());
  const auto form = GENERATE(AdapterForm::Gguf, AdapterForm::Peft);
  folder.make("a", TensorType::F32, form, kHighRanks);
  const std::string path =
      folder.path(form == AdapterForm::Gguf ? "a" : "a/adapter_model.safetensors");
  REQUIRE(std::filesystem::file_size(path) > (3 << 20));
  const auto written = std::filesystem::last_write_time(path);
  auto file = folder.open("a");
  REQUIRE(file);
  const auto original = read_all(*file);
  REQUIRE(original);
  std::fstream(path).seekp(2 << 20).put('x');
  std::filesystem::last_write_time(path, written);
  CHECK(read_all(*file).error().code == Errc::FileCorrupt);
  // What was parsed is kept, and a file that was cut is an error, not a signal.
  std::fstream(path).put('x');
  std::filesystem::resize_file(path, 2 << 20);
  CHECK(read_all(*file).error().code == Errc::FileCorrupt);
  CHECK(folder.refusal("a").code == Errc::FileCorrupt);
}

TEST_CASE("adapter: the header of a GGUF file is read from a megabyte at most") {
  const AdapterFolder folder("llama", wide_model());
  folder.make("a", TensorType::F32, AdapterForm::Gguf, kHighRanks);
  std::string bytes = bytes_of(folder.path("a"));
  // The number of metadata entries is that of a header of 1 GiB.
  const std::uint64_t entries = (std::uint64_t{1} << 30) / 14;
  std::memcpy(bytes.data() + 16, &entries, sizeof entries);
  folder.write("a", bytes);
  check_error(folder.refusal("a"), Errc::FileCorrupt, "data must begin within 1048576 bytes");
}

TEST_CASE("adapter: the digest is that of the bytes, whatever the path") {
  const AdapterFolder folder;
  folder.write("a.gguf", one_matrix().bytes());
  folder.write("b.gguf", one_matrix().bytes());
  CHECK(folder.open("a.gguf")->digest() == folder.open("b.gguf")->digest());
  CHECK(folder.open("a.gguf")->digest() ==
        content_digest(GgufFile::open(folder.path("a.gguf")).value()).value());
  folder.make("a", TensorType::F16, AdapterForm::Peft);
  const ContentDigest before = folder.open("a")->digest();
  auto config = config_of(folder);
  config["lora_alpha"] = 3;
  set_config(folder, config);
  CHECK(folder.open("a")->digest() != before);
}

TEST_CASE("adapter: a file truncated at any byte is refused") {
  const AdapterFolder folder("llama", [] {
    make_model::ModelRequest tiny = small_model("llama");
    tiny.shape.layers = 1;
    tiny.shape.embd = 8;
    tiny.shape.heads = 2;
    tiny.shape.kv_heads = 1;
    tiny.shape.ffn = 8;
    return tiny;
  }());
  const make_model::TargetRanks ranks{1, 0, 0, 0, 0, 0, 1};
  const auto form = GENERATE(AdapterForm::Gguf, AdapterForm::Peft);
  folder.make("a", TensorType::F16, form, ranks);
  const std::string path = form == AdapterForm::Gguf ? "a" : "a/adapter_model.safetensors";
  const std::string bytes = bytes_of(folder.path(path));
  // The last tensor of a GGUF file may lack its padding.
  const std::size_t padding = form == AdapterForm::Gguf ? 16 : 0;
  for (std::size_t size = 0; size < bytes.size() - padding; ++size) {
    folder.write(path, bytes.substr(0, size));
    const auto file = folder.open("a");
    if (file || !is_typed(file.error().code)) FAIL(size << " of " << bytes.size());
  }
}

}  // namespace leasehold::testing
