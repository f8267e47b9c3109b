/// Which layers keep a recurrent state, its shape, and the rows of tensors that group heads.
#include <catch2/catch.hpp>

#include "kernels/model/weights_layout.hpp"
#include "tests/unit/model/config_cases.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

/// Four layers of a delta net with 2 key heads and 4 value heads of 8.
GgufBuilder delta_net(const std::string& architecture, std::uint32_t n_layers = 4) {
  return tiny_model(architecture)
      .set(architecture + ".block_count", n_layers)
      .set(architecture + ".ssm.conv_kernel", 4u)
      .set(architecture + ".ssm.state_size", 8u)
      .set(architecture + ".ssm.group_count", 2u)
      .set(architecture + ".ssm.time_step_rank", 4u)
      .set(architecture + ".ssm.inner_size", 32u);
}

/// One byte per layer, as GGUF stores booleans.
GgufBuilder with_recurrent_layers(GgufBuilder builder, const std::string& key,
                                  const std::string& layers) {
  return builder.set_raw(key, GgufType::Array,
                         raw(GgufType::Bool) + raw(std::uint64_t{layers.size()}) + layers);
}

std::vector<Mixer> mixers_of(const GgufBuilder& builder) {
  const auto config = config_of(builder);
  REQUIRE(config.has_value());
  std::vector<Mixer> mixers;
  for (const LayerConfig& layer : config->layers) {
    mixers.push_back(layer.mixer);
    CHECK((layer.n_kv_heads > 0) == (layer.mixer == Mixer::Attention));
  }
  return mixers;
}

constexpr Mixer kDelta = Mixer::DeltaNet;
constexpr Mixer kAttention = Mixer::Attention;

}  // namespace

TEST_CASE("recurrent: every fourth layer has attention, or those that the file names") {
  CHECK(mixers_of(delta_net("qwen35", 5)) ==
        std::vector{kDelta, kDelta, kDelta, kAttention, kDelta});
  CHECK(mixers_of(delta_net("qwen35", 4).set("qwen35.full_attention_interval", 2u)) ==
        std::vector{kDelta, kAttention, kDelta, kAttention});
  const std::string key = "qwen35.attention.recurrent_layers";
  CHECK(mixers_of(with_recurrent_layers(delta_net("qwen35", 3), key, {'\0', '\1', '\0'})) ==
        std::vector{kAttention, kDelta, kAttention});
  // The list counts the layers that only propose tokens.
  CHECK(mixers_of(with_recurrent_layers(delta_net("qwen35", 3), key, {'\1', '\0', '\0'})
                      .set("qwen35.nextn_predict_layers", 1u)) == std::vector{kDelta, kAttention});
  check_refused({{with_recurrent_layers(delta_net("qwen35", 3), key, {'\1', '\0'}),
                  Errc::FileCorrupt, "has 2 elements for 3 layers"},
                 {with_recurrent_layers(delta_net("qwen35", 2), key, {'\1', '\1'}),
                  Errc::UnsupportedModel, "no layer has attention"},
                 {delta_net("qwen35", 2), Errc::UnsupportedModel, "no layer has attention"}});
}

TEST_CASE("recurrent: the shape of a delta net is read and checked") {
  const auto config = config_of(delta_net("qwen35"));
  REQUIRE(config.has_value());
  CHECK(config->recurrent == RecurrentConfig{.n_taps = 4,
                                             .n_groups = 2,
                                             .n_heads = 4,
                                             .key_dim = 8,
                                             .head_dim = 8,
                                             .channels = 64,
                                             .alternates_groups = true});
  CHECK(config->gates_attention);
  CHECK(config_of(tiny_model("qwen3"))->recurrent == RecurrentConfig{});
  check_refused({{delta_net("qwen35").remove("qwen35.ssm.state_size"), Errc::FileCorrupt,
                  "qwen35.ssm.state_size"},
                 {delta_net("qwen35").set("qwen35.ssm.group_count", 3u), Errc::FileCorrupt,
                  "3 groups cannot share it evenly"},
                 {delta_net("qwen35").set("qwen35.ssm.inner_size", 33u), Errc::FileCorrupt,
                  "does not divide into 4 heads"},
                 {delta_net("qwen35").set("qwen35.ssm.conv_kernel", 1u), Errc::UnsupportedModel,
                  "at least 2 positions"},
                 {delta_net("qwen35").set("qwen35.ssm.conv_kernel", 17u), Errc::UnsupportedModel,
                  "at most 16"}});
}

TEST_CASE("recurrent: layers without kv heads have the family's mixer") {
  using Numbers = std::vector<std::int32_t>;
  const auto lfm2 = tiny_model("lfm2")
                        .set("lfm2.block_count", 3u)
                        .set("lfm2.attention.head_count_kv", Numbers{0, 2, 0})
                        .set("lfm2.shortconv.l_cache", 3u);
  CHECK(mixers_of(lfm2) ==
        std::vector{Mixer::ShortConvolution, kAttention, Mixer::ShortConvolution});
  CHECK(config_of(lfm2)->recurrent == RecurrentConfig{.n_taps = 3, .channels = 32});
  auto nemotron = delta_net("nemotron_h", 4)
                      .set("nemotron_h.attention.head_count_kv", Numbers{0, 0, 2, 0})
                      .set("nemotron_h.feed_forward_length", Numbers{0, 64, 0, 0});
  CHECK(mixers_of(nemotron) == std::vector{Mixer::Mamba2, Mixer::None, kAttention, Mixer::Mamba2});
  check_refused(
      {{GgufBuilder(nemotron).set("nemotron_h.feed_forward_length", Numbers{0, 64, 64, 0}),
        Errc::UnsupportedModel, "layer 2 attention and a feed-forward"},
       {GgufBuilder(nemotron).set("nemotron_h.attention.head_count_kv", Numbers{0, 3, 2, 0}),
        Errc::FileCorrupt, "head_count_kv is 3"},
       {tiny_model("qwen3").set("qwen3.attention.head_count_kv", Numbers{0, 2}), Errc::FileCorrupt,
        "has the element 0"}});
}

TEST_CASE("recurrent: rows that a file groups by head are loaded one part after the other") {
  // Per key head: a key and a query of 8 rows each, two values and two gates of 8.
  GgufBuilder old = delta_net("qwen3next", 2)
                        .set("qwen3next.full_attention_interval", 2u)
                        .set("qwen3next.expert_count", 2u)
                        .set("qwen3next.expert_used_count", 1u)
                        .set("qwen3next.expert_shared_feed_forward_length", 64u);
  const auto config = config_of(old);
  REQUIRE(config.has_value());
  GgufBuilder file_builder = old;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    file_builder.tensor(name, TensorType::F32, std::move(shape));
  };
  for (const std::string block : {"blk.0.", "blk.1."})
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
                             "ffn_down", "ffn_norm"})
      file_builder.remove_tensor(block + name + ".weight");
  for (const std::string block : {"blk.0.", "blk.1."}) {
    add(block + "attn_norm.weight", {32});
    add(block + "post_attention_norm.weight", {32});
    add(block + "ffn_gate_inp.weight", {32, 2});
    add(block + "ffn_gate_exps.weight", {32, 64, 2});
    add(block + "ffn_up_exps.weight", {32, 64, 2});
    add(block + "ffn_down_exps.weight", {64, 32, 2});
    add(block + "ffn_gate_inp_shexp.weight", {32});
    add(block + "ffn_gate_shexp.weight", {32, 64});
    add(block + "ffn_up_shexp.weight", {32, 64});
    add(block + "ffn_down_shexp.weight", {64, 32});
  }
  add("blk.0.ssm_in.weight", {32, 96});
  add("blk.0.ssm_ba.weight", {32, 8});
  add("blk.0.ssm_conv1d.weight", {4, 64});
  add("blk.0.ssm_dt.bias", {4});
  add("blk.0.ssm_a", {4});
  add("blk.0.ssm_norm.weight", {8});
  add("blk.0.ssm_out.weight", {32, 32});
  add("blk.1.attn_q.weight", {32, 64});
  add("blk.1.attn_q_norm.weight", {8});
  add("blk.1.attn_k.weight", {32, 16});
  add("blk.1.attn_k_norm.weight", {8});
  add("blk.1.attn_v.weight", {32, 16});
  add("blk.1.attn_output.weight", {32, 32});
  const TemporaryFile path(file_builder.bytes());
  const auto file = GgufFile::open(path.path());
  REQUIRE(file.has_value());
  const auto layout = make_weights_layout(*file, *config);
  if (!layout) FAIL(layout.error().detail);
  using Pieces = std::vector<WeightPiece>;
  CHECK(layout->find("blk.0.attn_qkv.weight")->pieces == Pieces{{"blk.0.ssm_in.weight", 0, 8},
                                                                {"blk.0.ssm_in.weight", 48, 8},
                                                                {"blk.0.ssm_in.weight", 8, 8},
                                                                {"blk.0.ssm_in.weight", 56, 8},
                                                                {"blk.0.ssm_in.weight", 16, 16},
                                                                {"blk.0.ssm_in.weight", 64, 16}});
  CHECK(layout->find("blk.0.attn_gate.weight")->pieces ==
        Pieces{{"blk.0.ssm_in.weight", 32, 16}, {"blk.0.ssm_in.weight", 80, 16}});
  CHECK(layout->find("blk.0.ssm_alpha.weight")->pieces ==
        Pieces{{"blk.0.ssm_ba.weight", 2, 2}, {"blk.0.ssm_ba.weight", 6, 2}});
  CHECK(layout->find("blk.1.attn_gate.weight")->pieces == Pieces{{"blk.1.attn_q.weight", 8, 8},
                                                                 {"blk.1.attn_q.weight", 24, 8},
                                                                 {"blk.1.attn_q.weight", 40, 8},
                                                                 {"blk.1.attn_q.weight", 56, 8}});
}

TEST_CASE("recurrent: a file that names no shared expert has one if it has its tensors") {
  const GgufBuilder experts = delta_net("granitehybrid", 2)
                                  .set("granitehybrid.expert_count", 4u)
                                  .set("granitehybrid.expert_used_count", 2u);
  constexpr const char* kWidth = "granitehybrid.expert_shared_feed_forward_length";
  const auto shared_width = [](const GgufBuilder& builder) {
    const auto config = config_of(builder);
    REQUIRE(config.has_value());
    return config->experts.n_shared_ff;
  };
  CHECK(shared_width(experts) == 0);
  CHECK(shared_width(GgufBuilder(experts).set(kWidth, 0u)) == 0);
  CHECK(shared_width(GgufBuilder(experts).set(kWidth, 48u)) == 48);
  CHECK(shared_width(GgufBuilder(experts).tensor("blk.1.ffn_up_shexp.weight", TensorType::F32,
                                                 {32, 64})) == 64);
}
