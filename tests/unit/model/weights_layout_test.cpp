#include "kernels/model/weights_layout.hpp"

#include <catch2/catch.hpp>

#include "tests/support/gguf_builder.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

Result<WeightsLayout> layout_of(const GgufBuilder& builder,
                                Arithmetic arithmetic = Arithmetic::F32) {
  const TemporaryFile file(builder.bytes());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.has_value());
  const auto config = read_config(*gguf);
  REQUIRE(config.has_value());
  return make_weights_layout(*gguf, *config, arithmetic);
}

void check_refused(const GgufBuilder& builder, Errc code, const std::string& expected_detail) {
  INFO(expected_detail);
  const auto layout = layout_of(builder);
  REQUIRE_FALSE(layout.has_value());
  CHECK(name(layout.error().code) == name(code));
  CHECK_THAT(layout.error().detail, Contains(expected_detail));
}

GgufBuilder experts(const std::string& architecture = "llama") {
  GgufBuilder builder = tiny_model(architecture)
                            .set(architecture + ".expert_count", 4u)
                            .set(architecture + ".expert_used_count", 2u);
  for (const std::string block : {"blk.0.", "blk.1."})
    builder.remove_tensor(block + "ffn_gate.weight")
        .remove_tensor(block + "ffn_up.weight")
        .remove_tensor(block + "ffn_down.weight")
        .tensor(block + "ffn_gate_inp.weight", TensorType::F32, {32, 4})
        .tensor(block + "ffn_gate_exps.weight", TensorType::Q8_0, {32, 64, 4})
        .tensor(block + "ffn_up_exps.weight", TensorType::Q8_0, {32, 64, 4})
        .tensor(block + "ffn_down_exps.weight", TensorType::Q4_0, {64, 32, 4});
  return builder;
}

}  // namespace

TEST_CASE("layout: weights are in order, on cache lines, without overlap") {
  const auto layout = layout_of(tiny_llama());
  REQUIRE(layout.has_value());
  REQUIRE(layout->weights.size() == 1 + 2 * 9 + 2);
  CHECK(layout->weights.front().name == "token_embd.weight");
  CHECK(layout->weights[1].name == "blk.0.attn_norm.weight");
  CHECK(layout->weights.back().name == "output.weight");

  std::uint64_t end = 0;
  for (const WeightTensor& weight : layout->weights) {
    CHECK(weight.region_offset_bytes % 64 == 0);
    CHECK(weight.region_offset_bytes >= end);
    CHECK(weight.region_offset_bytes - end < 64);
    CHECK(weight.size_bytes == weight.rows * row_size_bytes(weight.type, weight.columns));
    end = weight.region_offset_bytes + weight.size_bytes;
  }
  CHECK(layout->size_bytes % 64 == 0);
  CHECK(layout->size_bytes >= end);
}

TEST_CASE("layout: a matrix keeps its type and shape") {
  const auto layout = layout_of(tiny_llama());
  REQUIRE(layout.has_value());
  const WeightTensor* key = layout->find("blk.1.attn_k.weight");
  REQUIRE(key != nullptr);
  CHECK(key->type == TensorType::Q8_0);
  CHECK(key->rows == 16);
  CHECK(key->columns == 32);
  CHECK(layout->find("blk.2.attn_k.weight") == nullptr);
}

TEST_CASE("layout: tied embeddings need no output matrix") {
  const auto layout = layout_of(tiny_llama().remove_tensor("output.weight"));
  REQUIRE(layout.has_value());
  CHECK(layout->weights.back().name == "output_norm.weight");
  CHECK(layout->find("output.weight") == nullptr);
}

TEST_CASE("layout: wide heads widen only the query and output matrices") {
  GgufBuilder builder = tiny_llama().set("llama.attention.key_length", 16u);
  for (const std::string block : {"blk.0.", "blk.1."})
    builder.tensor(block + "attn_q.weight", TensorType::F32, {32, 64})
        .tensor(block + "attn_k.weight", TensorType::F32, {32, 32})
        .tensor(block + "attn_v.weight", TensorType::F32, {32, 32})
        .tensor(block + "attn_output.weight", TensorType::F32, {64, 32});
  const auto layout = layout_of(builder);
  REQUIRE(layout.has_value());
  CHECK(layout->find("blk.0.attn_q.weight")->rows == 64);
  CHECK(layout->find("blk.0.attn_output.weight")->columns == 64);
}

TEST_CASE("layout: a missing weight is an error that names it") {
  const auto whole = layout_of(tiny_llama());
  REQUIRE(whole.has_value());
  for (const WeightTensor& weight : whole->weights) {
    if (weight.name == "output.weight" || weight.name == "token_embd.weight") continue;
    check_refused(tiny_llama().remove_tensor(weight.name), Errc::MissingWeight, weight.name);
  }
}

TEST_CASE("layout: a weight of another shape or a norm of another type is refused") {
  check_refused(tiny_llama().tensor("blk.1.attn_q.weight", TensorType::F32, {32, 16}),
                Errc::FileCorrupt, "blk.1.attn_q.weight has 16 rows of 32");
  check_refused(tiny_llama().tensor("blk.1.attn_q.weight", TensorType::F32, {16, 32}),
                Errc::FileCorrupt, "blk.1.attn_q.weight has 32 rows of 16");
  check_refused(tiny_llama().tensor("blk.0.ffn_down.weight", TensorType::F32, {32, 64}),
                Errc::FileCorrupt, "blk.0.ffn_down.weight");
  check_refused(tiny_llama().tensor("blk.0.ffn_norm.weight", TensorType::F16, {32}),
                Errc::UnsupportedModel, "blk.0.ffn_norm.weight is F16");
}

TEST_CASE("layout: a model with an unused tensor is refused with its name") {
  check_refused(tiny_llama().tensor("blk.0.attn_q_norm.weight", TensorType::F32, {8}),
                Errc::UnsupportedModel, "blk.0.attn_q_norm.weight");
  check_refused(tiny_llama().tensor("blk.1.ffn_gate_inp.weight", TensorType::F32, {32, 4}),
                Errc::UnsupportedModel, "blk.1.ffn_gate_inp.weight");
}

TEST_CASE(
    "layout: the layers of multi-token prediction are not loaded, and only those may be more") {
  const auto with_extra = [](const std::string& tensor) {
    return tiny_llama()
        .set("llama.block_count", 3u)
        .set("llama.nextn_predict_layers", 1u)
        .tensor(tensor, TensorType::F32, {64, 32});
  };
  const auto layout = layout_of(with_extra("blk.2.nextn.eh_proj.weight"));
  REQUIRE(layout.has_value());
  CHECK(layout->digest == layout_of(tiny_llama())->digest);
  for (const std::string other : {"blk.3.nextn.eh_proj.weight", "blk.1.nextn.eh_proj.weight",
                                  "blk..nextn.eh_proj.weight", "nextn.2.weight"})
    check_refused(with_extra(other), Errc::UnsupportedModel, other);
}

TEST_CASE(
    "layout: biases are optional for llama and required for qwen2; rope divisors are not weights") {
  const auto plain = layout_of(tiny_llama());
  const auto biased = layout_of(tiny_llama()
                                    .tensor("blk.1.attn_v.bias", TensorType::F32, {16})
                                    .tensor("blk.0.attn_output.bias", TensorType::F32, {32})
                                    .vector("rope_freqs.weight", {1, 1, 2, 2}));
  REQUIRE(biased.has_value());
  CHECK(biased->weights.size() == plain->weights.size() + 2);
  CHECK(biased->find("blk.1.attn_v.bias") != nullptr);
  CHECK_FALSE(biased->digest == plain->digest);
  check_refused(tiny_llama().tensor("blk.0.attn_k.bias", TensorType::F32, {32}), Errc::FileCorrupt,
                "blk.0.attn_k.bias has 1 rows of 32");
  check_refused(tiny_llama().tensor("blk.0.attn_q.bias", TensorType::F16, {32}),
                Errc::UnsupportedModel, "blk.0.attn_q.bias is F16");
  check_refused(tiny_model("qwen2"), Errc::MissingWeight, "blk.0.attn_q.bias");
  check_refused(tiny_model("qwen3"), Errc::MissingWeight, "blk.0.attn_q_norm.weight");
}

TEST_CASE("layout: the experts of a layer are one tensor of consecutive matrices") {
  const auto layout = layout_of(experts());
  REQUIRE(layout.has_value());
  CHECK(layout->find("blk.1.ffn_up_exps.weight")->rows == 4 * 64);
  CHECK(layout->find("blk.1.ffn_down_exps.weight")->rows == 4 * 32);
  CHECK(layout->find("blk.1.ffn_down_exps.weight")->columns == 64);
  check_refused(experts().set("llama.expert_count", 8u), Errc::FileCorrupt, "ffn_gate_inp.weight");
  check_refused(experts().tensor("blk.0.ffn_up_exps.weight", TensorType::F16, {32, 64, 3}),
                Errc::FileCorrupt, "blk.0.ffn_up_exps.weight has 192 rows of 32");
  check_refused(experts().remove_tensor("blk.1.ffn_down_exps.weight"), Errc::MissingWeight,
                "blk.1.ffn_down_exps.weight");
  check_refused(experts().tensor("blk.1.ffn_down.weight", TensorType::F32, {64, 32}),
                Errc::UnsupportedModel, "blk.1.ffn_down.weight");
}

TEST_CASE("layout: only files of ERNIE may lack the bias with which experts are chosen") {
  check_refused(experts("glm4moe"), Errc::MissingWeight, "blk.0.exp_probs_b.bias");
  CHECK(layout_of(experts("ernie4_5-moe").set("ernie4_5-moe.expert_shared_count", 0u)).has_value());
}

TEST_CASE("layout: rows come from a fused tensor if the file has one") {
  GgufBuilder fused = tiny_model("phi3");
  for (const std::string block : {"blk.0.", "blk.1."})
    fused.remove_tensor(block + "attn_q.weight")
        .remove_tensor(block + "attn_k.weight")
        .remove_tensor(block + "attn_v.weight")
        .remove_tensor(block + "ffn_gate.weight")
        .tensor(block + "attn_qkv.weight", TensorType::Q8_0, {32, 64})
        .tensor(block + "ffn_up.weight", TensorType::F16, {32, 128});
  const auto layout = layout_of(fused, Arithmetic::Int8);
  REQUIRE(layout.has_value());
  const auto pieces = [&](const char* name) { return layout->find(name)->pieces; };
  using Pieces = std::vector<WeightPiece>;
  CHECK(pieces("blk.1.attn_q.weight") == Pieces{{"blk.1.attn_qkv.weight", 0, 32}});
  CHECK(pieces("blk.1.attn_k.weight") == Pieces{{"blk.1.attn_qkv.weight", 32, 16}});
  CHECK(pieces("blk.1.attn_v.weight") == Pieces{{"blk.1.attn_qkv.weight", 48, 16}});
  CHECK(pieces("blk.0.ffn_gate.weight") == Pieces{{"blk.0.ffn_up.weight", 0, 64}});
  CHECK(pieces("blk.0.ffn_up.weight") == Pieces{{"blk.0.ffn_up.weight", 64, 64}});
  CHECK(layout->find("blk.1.attn_v.weight")->layout == MatrixLayout::RowGroups);
  CHECK(layout->find("blk.0.ffn_up.weight")->size_bytes == 64 * 32 * 2);
  CHECK(layout_of(tiny_model("phi3"))->find("blk.0.ffn_up.weight")->pieces.empty());
  check_refused(GgufBuilder(fused).tensor("blk.1.attn_qkv.weight", TensorType::Q8_0, {32, 63}),
                Errc::FileCorrupt, "blk.1.attn_qkv.weight has 63 rows of 32");
  check_refused(GgufBuilder(fused).tensor("blk.1.attn_q.weight", TensorType::Q8_0, {32, 32}),
                Errc::MissingWeight, "blk.1.attn_k.weight");
  check_refused(GgufBuilder(fused).tensor("blk.0.ffn_gate.weight", TensorType::F16, {32, 64}),
                Errc::FileCorrupt, "blk.0.ffn_up.weight has 128 rows of 32");
  check_refused(tiny_model("phi3").remove_tensor("blk.1.attn_k.weight"), Errc::MissingWeight,
                "blk.1.attn_k.weight");
}

TEST_CASE("layout: a file of any architecture may have queries, keys and values in one tensor") {
  const auto with_biases = [] {
    GgufBuilder file = tiny_llama();
    for (const std::string block : {"blk.0.", "blk.1."})
      file.tensor(block + "attn_q.bias", TensorType::F32, {32})
          .tensor(block + "attn_k.bias", TensorType::F32, {16})
          .tensor(block + "attn_v.bias", TensorType::F32, {16});
    return file;
  };
  const auto joined = [&](const std::string& suffix, GgufBuilder file) {
    for (const std::string block : {"blk.0.", "blk.1."}) {
      for (const char* part : {"attn_q", "attn_k", "attn_v"})
        file.remove_tensor(block + part + suffix);
      file.tensor(
          block + "attn_qkv" + suffix, TensorType::F32,
          suffix == ".bias" ? std::vector<std::uint64_t>{64} : std::vector<std::uint64_t>{32, 64});
    }
    return file;
  };
  GgufBuilder apart = with_biases();
  for (const std::string block : {"blk.0.", "blk.1."})
    for (const auto& [part, rows] : {std::pair("attn_q", 32u), {"attn_k", 16u}, {"attn_v", 16u}})
      apart.tensor(block + part + ".weight", TensorType::F32, {32, rows});
  const auto expected = layout_of(apart);
  REQUIRE(expected.has_value());
  const GgufBuilder weights_joined = joined(".weight", apart);
  CHECK(layout_of(weights_joined)->digest == expected->digest);
  const GgufBuilder both_joined = joined(".bias", weights_joined);
  const auto both = layout_of(both_joined);
  REQUIRE(both.has_value());
  CHECK(both->digest == expected->digest);
  using Pieces = std::vector<WeightPiece>;
  CHECK(both->find("blk.1.attn_v.weight")->pieces == Pieces{{"blk.1.attn_qkv.weight", 48, 16}});
  CHECK(both->find("blk.1.attn_k.bias")->pieces == Pieces{{"blk.1.attn_qkv.bias", 32, 16}});
  CHECK(layout_of(joined(".bias", apart))->digest == expected->digest);

  const TemporaryFile path(both_joined.bytes());
  const auto file = GgufFile::open(path.path());
  REQUIRE(file.has_value());
  const auto all = file->data(*file->find("blk.1.attn_qkv.bias"));
  std::vector<std::byte> values(15 * 4);
  REQUIRE(read_weight(*file, *both->find("blk.1.attn_v.bias"), 4, values));
  CHECK(std::ranges::equal(values, all.last(15 * 4)));
  check_refused(GgufBuilder(both_joined).tensor("blk.1.attn_qkv.bias", TensorType::F32, {63}),
                Errc::FileCorrupt, "blk.1.attn_qkv.bias has 1 rows of 63");
  check_refused(GgufBuilder(both_joined).tensor("blk.1.attn_qkv.bias", TensorType::F16, {64}),
                Errc::UnsupportedModel, "blk.1.attn_q.bias is F16");
  check_refused(GgufBuilder(both_joined).tensor("blk.0.attn_q.weight", TensorType::F32, {32, 32}),
                Errc::MissingWeight, "blk.0.attn_k.weight");
}

TEST_CASE("layout: experts may be fused, or in a tensor each") {
  GgufBuilder fused = experts();
  GgufBuilder apart = experts();
  for (const std::string block : {"blk.0.", "blk.1."}) {
    fused.remove_tensor(block + "ffn_gate_exps.weight")
        .remove_tensor(block + "ffn_up_exps.weight")
        .tensor(block + "ffn_gate_up_exps.weight", TensorType::Q8_0, {32, 128, 4});
    apart.remove_tensor(block + "ffn_down_exps.weight");
    for (const std::string expert : {"0", "1", "2", "3"})
      apart.tensor(block + "ffn_down." + expert + ".weight", TensorType::Q4_0, {64, 32});
  }
  const auto layout = layout_of(fused);
  REQUIRE(layout.has_value());
  CHECK(layout->find("blk.1.ffn_up_exps.weight")->pieces[2] ==
        WeightPiece{"blk.1.ffn_gate_up_exps.weight", 2 * 128 + 64, 64});
  CHECK(layout->digest == layout_of(experts())->digest);
  const auto separate = layout_of(apart);
  REQUIRE(separate.has_value());
  CHECK(separate->find("blk.0.ffn_down_exps.weight")->pieces[3] ==
        WeightPiece{"blk.0.ffn_down.3.weight", 0, 32});
  CHECK(separate->digest == layout_of(experts())->digest);
  check_refused(GgufBuilder(apart).remove_tensor("blk.1.ffn_down.3.weight"), Errc::MissingWeight,
                "blk.1.ffn_down.3.weight");
  check_refused(GgufBuilder(apart).tensor("blk.1.ffn_down.2.weight", TensorType::F16, {64, 32}),
                Errc::UnsupportedModel, "blk.1.ffn_down.2.weight is F16");
  check_refused(GgufBuilder(apart).tensor("blk.1.ffn_down.4.weight", TensorType::Q4_0, {64, 32}),
                Errc::UnsupportedModel, "blk.1.ffn_down.4.weight");
}

TEST_CASE("layout: bytes of a weight are read across its pieces") {
  GgufBuilder apart = experts();
  for (const std::string block : {"blk.0.", "blk.1."}) {
    apart.remove_tensor(block + "ffn_gate_exps.weight");
    for (const std::string expert : {"0", "1", "2", "3"})
      apart.tensor(block + "ffn_gate." + expert + ".weight", TensorType::F16, {32, 64});
  }
  const TemporaryFile path(apart.bytes());
  const auto file = GgufFile::open(path.path());
  REQUIRE(file.has_value());
  const auto layout = make_weights_layout(*file, *read_config(*file));
  REQUIRE(layout.has_value());
  const WeightTensor& weight = *layout->find("blk.1.ffn_gate_exps.weight");
  std::vector<std::byte> expected;
  for (const std::string expert : {"0", "1", "2", "3"}) {
    const auto bytes = file->data(*file->find("blk.1.ffn_gate." + expert + ".weight"));
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  REQUIRE(expected.size() == weight.size_bytes);
  for (const auto& [from, count] : {std::pair(0, 16384), std::pair(4095, 2), std::pair(4096, 4096),
                                    std::pair(100, 9000), std::pair(16383, 1)}) {
    CAPTURE(from, count);
    std::vector<std::byte> read(static_cast<std::size_t>(count));
    REQUIRE(read_weight(*file, weight, static_cast<std::uint64_t>(from), read));
    CHECK(std::ranges::equal(read, std::span(expected).subspan(from, count)));
  }
}

TEST_CASE("layout: int8 takes quantised matrices, and experts that are whole groups of rows") {
  const auto layout_in = [](const GgufBuilder& builder, const std::string& tensor) {
    const auto layout = layout_of(builder, Arithmetic::Int8);
    REQUIRE(layout.has_value());
    return layout->find(tensor)->layout;
  };
  CHECK(layout_in(experts(), "blk.0.ffn_up_exps.weight") == MatrixLayout::RowGroups);
  CHECK(layout_in(experts(), "blk.0.ffn_gate_inp.weight") == MatrixLayout::Rows);
  CHECK(layout_in(experts(), "blk.0.attn_norm.weight") == MatrixLayout::Rows);
  // 40 rows per expert; all experts together would be whole groups.
  GgufBuilder odd = experts().set("llama.expert_feed_forward_length", 40u);
  for (const std::string block : {"blk.0.", "blk.1."})
    odd.tensor(block + "ffn_gate_exps.weight", TensorType::Q8_0, {32, 40, 4})
        .tensor(block + "ffn_up_exps.weight", TensorType::Q8_0, {32, 40, 4})
        .tensor(block + "ffn_down_exps.weight", TensorType::F16, {40, 32, 4});
  CHECK(layout_in(odd, "blk.0.ffn_up_exps.weight") == MatrixLayout::Rows);
  CHECK(layout_in(odd, "blk.0.ffn_down_exps.weight") == MatrixLayout::Rows);
}

TEST_CASE("layout: int8 is fastest for quantised matrices if it takes all of them") {
  const auto fastest = [](const GgufBuilder& builder) {
    const auto layout = layout_of(builder, Arithmetic::Int8);
    REQUIRE(layout.has_value());
    return fastest_arithmetic(*layout);
  };
  CHECK(fastest(tiny_llama()) == Arithmetic::Int8);  // with some matrices in F16 and F32
  CHECK(fastest(experts()) == Arithmetic::Int8);
  GgufBuilder halves = tiny_llama().tensor("token_embd.weight", TensorType::F16, {32, kTinyVocab});
  for (const std::string block : {"blk.0.", "blk.1."})
    halves.tensor(block + "attn_q.weight", TensorType::F16, {32, 32})
        .tensor(block + "attn_k.weight", TensorType::F16, {32, 16})
        .tensor(block + "attn_v.weight", TensorType::BF16, {32, 16})
        .tensor(block + "ffn_gate.weight", TensorType::F16, {32, 64})
        .tensor(block + "ffn_up.weight", TensorType::F16, {32, 64});
  CHECK(fastest(halves) == Arithmetic::F32);
  GgufBuilder odd = experts().set("llama.expert_feed_forward_length", 40u);
  for (const std::string block : {"blk.0.", "blk.1."})
    odd.tensor(block + "ffn_gate_exps.weight", TensorType::Q8_0, {32, 40, 4})
        .tensor(block + "ffn_up_exps.weight", TensorType::F16, {32, 40, 4})
        .tensor(block + "ffn_down_exps.weight", TensorType::F16, {40, 32, 4});
  CHECK(fastest(odd) == Arithmetic::F32);
}

TEST_CASE("layout: the digest depends on types and shapes, not on the order in the file or bytes") {
  GgufBuilder reordered = tiny_llama();
  reordered.remove_tensor("token_embd.weight")
      .tensor("token_embd.weight", TensorType::Q8_0, {32, kTinyVocab});
  GgufBuilder retyped = tiny_llama();
  retyped.tensor("blk.0.ffn_up.weight", TensorType::Q4_0, {32, 64});

  const auto layout = layout_of(tiny_llama());
  REQUIRE(layout.has_value());
  CHECK(layout_of(reordered)->digest == layout->digest);
  CHECK(layout_of(reordered)->weights == layout->weights);
  CHECK_FALSE(layout_of(retyped)->digest == layout->digest);
}

TEST_CASE("layout: the digest of version 2 does not change") {
  // Workers of two builds share a region only with equal digests. A change of the layout needs a
  // new kWeightsLayoutVersion and a new value here.
  const auto layout = layout_of(tiny_llama());
  REQUIRE(layout.has_value());
  CHECK(kWeightsLayoutVersion == 3);
  CHECK(to_hex(layout->digest) ==
        "fd9f9c3bf731b8b6f28ecdbdc044eeecf20b4f438e617bde584ce0dce5d55ccb");
}

TEST_CASE("layout: the small trained models have layouts of nearly their file's size") {
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const std::string path = test_data(std::string("models/stories260K-") + type + ".gguf");
    if (path.empty()) return;
    INFO(path);
    const auto file = GgufFile::open(path);
    REQUIRE(file.has_value());
    const auto layout = make_weights_layout(*file, *read_config(*file));
    REQUIRE(layout.has_value());
    CHECK(layout->weights.size() == 48);
    CHECK(layout->size_bytes < file->identity().size_bytes);
    CHECK(layout->size_bytes > file->identity().size_bytes * 9 / 10);
  }
}
