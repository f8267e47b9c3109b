/// Compares models of random shapes, of every architecture, with a plain computation in doubles.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/model/weights_layout.hpp"
#include "tests/model/matrix.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/plain_model.hpp"
#include "tests/support/required.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {
namespace {

using make_model::ModelRequest;

/// The distance of our sums from doubles, as a share of the largest logit. Deep models of few heads
/// amplify rounding; a difference in the formulas is a hundred times as large.
constexpr double kShareOfLogits = 1e-3;

/// Draws the request of a model that differs from the shared ones in as many sizes as possible. No
/// width is so small that a norm of few elements multiplies rounding errors.
class ShapeDraw {
 public:
  ShapeDraw(const Architecture& row, std::uint64_t seed) : row_(row), random_(seed) {
    request_.architecture = row.name;
    request_.seed = seed;
  }

  ModelRequest request() {
    draw_widths();
    draw_experts();
    draw_windows();
    if (row_.has_latent_attention) draw_latent();
    draw_state();
    request_.has_optional = flip();
    request_.joins_heads = flip();
    return request_;
  }

 private:
  template <std::size_t kCount>
  std::uint32_t pick(const std::uint32_t (&of)[kCount]) {
    return of[random_.below(kCount)];
  }
  bool flip() { return random_.below(2) == 0; }
  std::uint32_t up_to(std::uint32_t most) {
    return static_cast<std::uint32_t>(1 + random_.below(most));
  }
  std::uint32_t even_up_to(std::uint32_t most) { return 2 * up_to(most / 2); }

  void draw_widths() {
    make_model::ModelShape& shape = request_.shape;
    shape.layers = up_to(8);
    shape.embd = pick({32, 34, 46, 64, 66, 98});
    shape.heads = up_to(9);
    do shape.kv_heads = up_to(shape.heads);
    while (shape.heads % shape.kv_heads != 0);
    shape.head_width = pick({4, 10, 16, 18, 24, 32, 36, 66});
    shape.rope_width = flip() ? 0 : even_up_to(shape.head_width);
    shape.ffn = pick({18, 30, 34, 64, 98});
    shape.vocab = 259 + up_to(70);
    shape.context = 128;
    shape.tied = flip();
    constexpr make_model::Rope kRopes[] = {make_model::Rope::Plain, make_model::Rope::Linear,
                                           make_model::Rope::Yarn, make_model::Rope::Divisors};
    request_.rope = kRopes[random_.below(std::size(kRopes))];
  }

  void draw_experts() {
    if (row_.experts.empty() || (!row_.feed_forward.empty() && flip())) return;
    make_model::ModelShape& shape = request_.shape;
    shape.experts = up_to(9);
    shape.experts_used = up_to(shape.experts);
    shape.expert_ffn = pick({0, 18, 32, 50});
    const bool may_be_dense = !row_.feed_forward.empty() && !row_.has_experts_beside &&
                              !row_.mixers.excludes_feed_forward;
    if (may_be_dense) shape.dense_layers = static_cast<std::uint32_t>(random_.below(shape.layers));
  }

  void draw_windows() {
    if (row_.windows.full_every == 0) return;
    request_.shape.window = flip() ? up_to(60) : up_to(8);
    if (!row_.windows.needs_width && random_.below(5) == 0) request_.shape.window = 0;
    if (!row_.has_shared_kv) return;
    // The last layer before the shared ones has no window, and the one before it has one.
    const std::uint32_t first = row_.windows.full_every;
    request_.layer_shape.window_head_width = flip() ? 0 : pick({4, 10, 16, 30, 64});
    if (flip()) request_.layer_shape.layer_embd = even_up_to(40);
    if (request_.shape.layers > first)
      request_.layer_shape.shared_layers = request_.shape.layers - first;
    request_.rope = make_model::Rope::Divisors;
  }

  void draw_latent() {
    request_.rope = flip() ? make_model::Rope::Plain : make_model::Rope::Yarn;
    request_.shape.rope_width = even_up_to(request_.shape.head_width - 2);
    request_.latent_shape.rank = pick({10, 24, 40, 66});
    request_.latent_shape.query_rank = pick({10, 18, 32});
    request_.latent_shape.has_direct_queries = flip();
    request_.latent_shape.has_fused_heads = flip();
  }

  void draw_state() {
    request_.state.key_size = pick({8, 10, 16, 18, 34});
    request_.state.groups = up_to(3);
    request_.state.heads = request_.state.groups * up_to(4);
  }

  const Architecture& row_;
  SeededRandom random_;
  ModelRequest request_ = {};
};

std::string describe(const ModelRequest& request) {
  const make_model::ModelShape& s = request.shape;
  return fmt::format(
      "{} seed={}: layers={} embd={} heads={}/{} head={} rotated={} ffn={} vocab={} tied={} "
      "experts={}/{} expert_ffn={} dense={} window={} window_head={} shared={} layer_embd={} "
      "rank={} query_rank={} direct={} fused={} state={}x{}x{} rope={} optional={} joined={}",
      request.architecture, request.seed, s.layers, s.embd, s.heads, s.kv_heads, s.head_width,
      s.rope_width, s.ffn, s.vocab, s.tied, s.experts_used, s.experts, s.expert_ffn, s.dense_layers,
      request.window(), request.layer_shape.window_head_width, request.layer_shape.shared_layers,
      request.layer_shape.layer_embd, request.latent_shape.rank, request.latent_shape.query_rank,
      request.latent_shape.has_direct_queries, request.latent_shape.has_fused_heads,
      request.state.groups, request.state.heads, request.state.key_size,
      static_cast<int>(request.rope), request.has_optional, request.joins_heads);
}

/// The largest difference of any logit, as a share of the largest logit.
double share_of_difference(const std::string& path, std::uint32_t n_tokens, Variant variant) {
  PlainModel plain(path);
  const auto n_vocab = static_cast<TokenId>(plain.config().n_vocab);
  const std::vector<TokenId> text = matrix_text_below(n_vocab, n_tokens);
  variant.kv_type = KvType::F32;
  const std::vector<float> ours = compute_logits(path, text, variant);
  double worst = 0;
  double largest = 0;
  std::size_t at = 0;
  for (const TokenId token : text)
    for (const double expected : plain.next(token)) {
      const double difference = std::abs(ours[at++] - expected);
      worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference);
      largest = std::max(largest, std::abs(expected));
    }
  return worst / largest;
}

void check_shape(const Architecture& row, std::uint64_t seed, std::uint32_t n_tokens) {
  const ModelRequest request = ShapeDraw(row, seed).request();
  INFO(describe(request));
  const TemporaryDirectory folder = TemporaryDirectory::create("shape").value();
  const std::string path = folder.file("m.gguf");
  required(make_model::write_model(request, path, [](auto, auto) {}));
  CHECK(share_of_difference(path, n_tokens, {.chunking = Chunking::Random, .seed = seed}) <
        kShareOfLogits);
}

}  // namespace

TEST_CASE("model: a random shape of every architecture agrees with a computation in doubles") {
  for (const Architecture& row : architectures()) check_shape(row, test_seed(1), 40);
}

TEST_CASE("model: only an architecture with latent attention is written with fused heads") {
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    ModelRequest request = ShapeDraw(row, 1).request();
    request.latent_shape.has_fused_heads = false;
    CHECK(make_model::check(request).has_value());
    request.latent_shape.has_fused_heads = true;
    CHECK(make_model::check(request).has_value() == row.has_latent_attention);
  }
}

TEST_CASE("model: queries, keys and values in one tensor give the bits of three") {
  std::size_t joined = 0;
  for (const Architecture& row : architectures()) {
    ModelRequest request = request_for({.name = "joined",
                                        .architecture = row.name,
                                        .with_experts = row.feed_forward.empty(),
                                        .head_dim = 64,
                                        .type = TensorType::Q8_0,
                                        .layers = 5,
                                        .has_optional = true,
                                        .window = row.windows.full_every > 0 ? 20u : 0u,
                                        .state_size = 32});
    if (row.needs_rope_factors) request.rope = make_model::Rope::Divisors;
    const TemporaryDirectory folder = TemporaryDirectory::create("joined").value();
    const auto logits = [&](bool joins_heads) {
      request.joins_heads = joins_heads;
      const std::string path = folder.file(joins_heads ? "joined.gguf" : "apart.gguf");
      required(make_model::write_model(request, path, [](auto, auto) {}));
      return compute_logits(path, matrix_text_below(500, 20), {.arithmetic = Arithmetic::Int8});
    };
    CAPTURE(row.name);
    const std::vector<float> apart = logits(false);
    CHECK(logits(true) == apart);
    const GgufFile file = required(GgufFile::open(folder.file("joined.gguf")));

    CHECK((file.find("blk.3.attn_qkv.weight") != nullptr) == !row.has_latent_attention);
    if (!row.has_latent_attention) ++joined;
  }
  CHECK(joined + 1 == architectures().size());
}

TEST_CASE("model: keys of fused heads have the type of the file, or are floats if it has blocks") {
  for (const TensorType type : {TensorType::F32, TensorType::F16, TensorType::Q8_0}) {
    Family family = family_named("deepseek2, fused heads, q8_0");
    family.type = type;
    const GeneratedModel model(family);
    const GgufFile file = required(GgufFile::open(model.path()));
    const ModelConfig config = required(read_config(file));
    const WeightsLayout layout = required(make_weights_layout(file, config, Arithmetic::Int8));
    const WeightTensor* const keys = layout.find("blk.1.attn_k_b.weight");
    const WeightTensor* const values = layout.find("blk.1.attn_v_b.weight");
    REQUIRE((keys != nullptr && values != nullptr));
    CAPTURE(name(type));
    CHECK(keys->is_transposed);
    CHECK(name(keys->type) == name(type == TensorType::Q8_0 ? TensorType::F32 : type));
    CHECK(keys->rows == config.n_heads * config.latent.rank);
    CHECK(keys->columns == config.latent.unrotated_dim);
    CHECK_FALSE(values->is_transposed);
    CHECK(name(values->type) == name(type));
    CHECK(values->rows == config.n_heads * config.latent.value_dim);
    CHECK(values->columns == config.latent.rank);
  }
}

TEST_CASE("model: many random shapes of every architecture agree with one in doubles",
          "[.][long]") {
  for (std::uint64_t seed = test_seed(1); seed < test_seed(1) + 40; ++seed)
    for (const Architecture& row : architectures()) check_shape(row, seed, 90);
}

}  // namespace leasehold::testing
