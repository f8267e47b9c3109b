#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

#include <numeric>

#include "common/expects.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kRows = 4;
constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kHeadDim = 16;
constexpr KvLayer kShape{.n_kv_heads = 2, .head_dim = kHeadDim, .type = KvType::F16};
const KvLayout kLayout(DecodeRig::kLayers, kShape);
constexpr std::uint32_t kKvWidth = kShape.n_kv_heads * kHeadDim;
const std::vector<std::uint32_t> kLengths{40, 33, 21};
const std::vector<std::int32_t> kTokens{3, 17, 29, 5};
const std::vector<float> kAngles(kRows* kHeadDim, 0.5F);

BackendLimits decode_limits() {
  return {.max_rows = kRows,
          .max_context = 64,
          .n_heads = kHeads,
          .head_dim = kHeadDim,
          .max_width = DecodeRig::kWidth,
          .max_logit_rows = kRows,
          .rope_dim = kHeadDim,
          .n_vocab = DecodeRig::kVocabulary,
          .scratch_bytes = 64 * 1024};
}

}  // namespace

RigMatrix::RigMatrix(SeededRandom& random, TensorType type, std::uint32_t n_out, std::uint32_t n_in,
                     MatrixLayout layout) {
  if (layout == MatrixLayout::Rows)
    rows_.emplace(random, type, n_out, n_in);
  else
    groups_.emplace(random, type, n_out, n_in);
}

WeightMatrix RigMatrix::view() const {
  return rows_ ? rows_->view() : groups_->view();
}

void RigMatrix::reach(DeviceRegistration& registration) const {
  const WeightMatrix matrix = view();
  const std::uint64_t size_bytes =
      rows_ ? matrix.n_out * row_size_bytes(matrix.type, matrix.n_in)
            : row_groups(matrix.n_out) * row_group_bytes(matrix.type, matrix.n_in);
  registration.add(matrix.data, size_bytes);
}

DecodeRig::DecodeRig(cuda::CudaOptions options, MatrixLayout layout, TensorType value)
    : DecodeRig(SeededRandom(7), options, layout, value) {}

DecodeRig::DecodeRig(SeededRandom random, cuda::CudaOptions options, MatrixLayout layout,
                     TensorType value)
    : kv(random, kLayout, kLengths),
      tables(kv.block_tables().begin(), kv.block_tables().end()),
      backend(required(
          cuda::CudaBackend::create(test_card(), decode_limits(), table.gate(0, &units), options))),
      table_of_tokens_(random, TensorType::Q8_0, kVocabulary, kWidth),
      query_(random, TensorType::Q8_0, kWidth, kWidth, layout),
      key_(random, TensorType::Q8_0, kKvWidth, kWidth, layout),
      out_(random, layout == MatrixLayout::Rows ? TensorType::F16 : TensorType::Q8_0, kWidth,
           kWidth, layout),
      up_(random, TensorType::Q8_0, kWidth, kWidth, layout),
      value_(random, value, kKvWidth, kWidth, layout),
      norm_(kWidth * sizeof(float)),
      x_(take(kWidth)),
      normed_(take(kWidth)),
      q_(take(kWidth)),
      k_(take(kKvWidth)),
      v_(take(kKvWidth)),
      attended_(take(kWidth)),
      wide_gate_(take(kWidth)),
      wide_up_(take(kWidth)),
      logits_(take(kVocabulary)) {
  norm_.fill<float>(std::vector<float>(kWidth, 1.0F));
  reach_.add(table_of_tokens_.view().data,
             kVocabulary * row_size_bytes(table_of_tokens_.type, kWidth));
  for (const RigMatrix* matrix : {&query_, &key_, &out_, &up_, &value_}) matrix->reach(reach_);
  reach_.add(norm_.at(), kWidth * sizeof(float));
  for (const BlockTableView& table_of : kv.block_tables())
    for (const Leased<std::byte> block : table_of.blocks)
      reach_.add(block, kLayout.block_size_bytes());
  reach_.open();
}

DecodeRig::~DecodeRig() {
  fake_cuda_restore_device();
  fake_cuda_release();
  // After a fault, queued work may still read memory that is freed now.
  ensures(test_card().driver().cuCtxSynchronize() == CUDA_SUCCESS, "the card ends all work");
}

float* DecodeRig::take(std::size_t width) {
  return reinterpret_cast<float*>(backend->allocate_scratch(kRows * width * sizeof(float)));
}

RmsNormArgs DecodeRig::norm_args(LaunchSite site) const {
  return {.site = site,
          .x = x_,
          .weight = norm_.at().as<const float>(),
          .out = normed_,
          .width = kWidth,
          .epsilon = 1e-5F};
}

SequenceMask DecodeRig::attention_block(const LaunchContext& context) {
  cuda::CudaBackend& b = *backend;
  const RmsNormArgs norm = norm_args(LaunchSite::AttentionNorm);
  const MatmulArgs projections[] = {{LaunchSite::QueryProjection, query_.view(), normed_, q_},
                                    {LaunchSite::KeyProjection, key_.view(), normed_, k_},
                                    {LaunchSite::ValueProjection, value_.view(), normed_, v_}};
  SequenceMask live = b.project(context, {.norm = &norm, .matmuls = projections}).live;
  const WeightMatrix output = out_.view();
  const HeadsArgs heads{.layout = kLayout.layer(context.layer),
                        .q = q_,
                        .k = k_,
                        .v = v_,
                        .n_heads = kHeads,
                        .epsilon = 1e-5F,
                        .rope_dim = kHeadDim,
                        .style = RopeStyle::Halves,
                        .cos_sin = kAngles.data(),
                        .block_tables = tables};
  live &= b.prepare_and_attend(context, heads,
                               {.layout = kLayout.layer(context.layer),
                                .q = q_,
                                .out = attended_,
                                .n_heads = kHeads,
                                .scale = 0.25F,
                                .block_tables = tables,
                                .next = &output})
              .live;
  return live & b.matmul(context, {.site = LaunchSite::AttentionOutput,
                                   .weight = output,
                                   .x = attended_,
                                   .out = x_,
                                   .accumulate = true})
                    .live;
}

SequenceMask DecodeRig::feed_forward(const LaunchContext& context) {
  const RmsNormArgs norm = norm_args(LaunchSite::FfnNorm);
  const FeedForwardArgs args{.norm = &norm,
                             .gate = {LaunchSite::FfnGate, query_.view(), normed_, wide_gate_},
                             .up = {LaunchSite::FfnUp, up_.view(), normed_, wide_up_},
                             .down = {.site = LaunchSite::FfnDown,
                                      .weight = out_.view(),
                                      .x = wide_gate_,
                                      .out = x_,
                                      .accumulate = true}};
  return backend->feed_forward(context, args).live;
}

SequenceMask DecodeRig::layer(const LaunchContext& context) {
  return attention_block(context) & feed_forward(context);
}

SequenceMask DecodeRig::operators(const GateSet& gates, std::span<const RowRef> rows,
                                  std::span<const std::uint32_t> logit_rows) {
  LaunchContext context{.gates = &gates, .rows = rows};
  SequenceMask live =
      backend->embedding(context, {table_of_tokens_.view(), kTokens.data(), x_}).live;
  for (; context.layer < kLayers && live != 0; ++context.layer) live &= layer(context);
  context.layer = kLayers - 1;
  if (live != 0)
    live &= backend
                ->matmul(context, {.site = LaunchSite::LmHead,
                                   .weight = table_of_tokens_.view(),
                                   .x = x_,
                                   .out = logits_,
                                   .select = logit_rows})
                .live;
  return live;
}

LaunchStatus DecodeRig::forward(const GateSet& gates, std::span<const RowRef> rows,
                                std::span<const std::uint32_t> logit_rows) {
  backend->begin_step({.gates = &gates,
                       .rows = rows,
                       .tokens = {kTokens.data(), rows.size()},
                       .block_tables = tables,
                       .logit_rows = logit_rows,
                       .cos_sin = {kAngles.data(), rows.size() * kHeadDim}});
  const SequenceMask live = operators(gates, rows, logit_rows);
  if (before_finish) before_finish();
  return {live & backend->finish_step(gates).live};
}

LaunchStatus DecodeRig::step(std::uint64_t engine_generation) {
  const auto gates = table.step(kSequences, engine_generation);
  const std::vector<RowRef> rows = rows_of({1, 1, 1}, kLengths);
  const std::vector<std::uint32_t> every{0, 1, 2};
  return forward(*gates, rows, every);
}

std::size_t DecodeRig::prepare(std::uint64_t engine_generation) {
  const auto gates = table.step(1, engine_generation);
  const RowRef row{};
  const std::uint32_t first = 0;
  return backend->prepare_steps(*gates, [&] { operators(*gates, {&row, 1}, {&first, 1}); });
}

LaunchStatus DecodeRig::prefill() {
  const auto gates = table.step(kSequences);
  const std::vector<RowRef> rows = rows_of({2, 1, 1}, kLengths);
  const std::vector<std::uint32_t> last{1, 2, 3};
  return forward(*gates, rows, last);
}

std::vector<float> DecodeRig::logits(std::uint32_t row) {
  const auto fetched = backend->fetch(logits_ + std::size_t{row} * kVocabulary, kVocabulary);
  return {fetched.begin(), fetched.end()};
}

std::vector<std::vector<float>> DecodeRig::all_logits() {
  return {logits(0), logits(1), logits(2)};
}

bool engine_polls_again() {
  // Before a poll the launcher queries the running launch, and perhaps an earlier one that has
  // ended.
  constexpr std::uint64_t kQueriesPerPoll = 2;
  const std::uint64_t before = fake_cuda_call_count("cuEventQuery");
  return eventually(
      [&] { return fake_cuda_call_count("cuEventQuery") > before + kQueriesPerPoll; });
}

}  // namespace leasehold::testing
