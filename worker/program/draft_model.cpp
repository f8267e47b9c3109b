#include "worker/program/draft_model.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <random>

#include "common/hex.hpp"
#include "kernels/model/kv_type.hpp"
#include "worker/lease/attachment.hpp"

namespace leasehold {
namespace {

constexpr const char* kWeightsPart = "draft";
constexpr const char* kMemoryPart = "draft.kv";  // `revoke --part draft` revokes both parts

/// Returns a layout digest that no other region has, so that the broker lends this memory to one
/// worker only.
std::string unique_layout() {
  std::array<std::uint8_t, 32> bytes;
  std::random_device random;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return to_hex(bytes);
}

DraftProposer::Config config_of(const WorkerOptions& options, const ModelConfig& draft,
                                const OpenedModel& model) {
  DraftProposer::Config config{.model = draft,
                               .kv_type = options.kv_type,
                               .max_batch_size = options.limits.max_batch_size,
                               .speculate = options.limits.speculate};
  config.model.n_context =
      std::min({draft.n_context, model.config.n_context, options.draft_context});
  return config;
}

}  // namespace

Result<void> check_same_vocabulary(const Tokenizer& draft, const std::string& draft_name,
                                   const Tokenizer& model, const std::string& model_name) {
  const auto differs = [&](const std::string& how) {
    return fail(Errc::UnsupportedModel,
                fmt::format("the draft model {} and the model {} have different vocabularies: {}; "
                            "use a draft model of the same family",
                            draft_name, model_name, how));
  };
  if (draft.n_vocab() != model.n_vocab())
    return differs(fmt::format("{} and {} tokens", draft.n_vocab(), model.n_vocab()));
  for (TokenId token = 0; model.contains(token); ++token)
    if (draft.text(token) != model.text(token)) return differs(fmt::format("token {}", token));
  return {};
}

Result<std::unique_ptr<DraftModel>> DraftModel::open(const WorkerOptions& options,
                                                     const OpenedModel& model) {
  if (options.draft_model_path.empty()) return nullptr;
  GgufFile file = TRY(GgufFile::open(options.draft_model_path));
  const ModelConfig config = TRY(read_config(file));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  TRY(check_same_vocabulary(tokenizer, options.draft_model_path, model.tokenizer,
                            options.model_path));
  TRY(kv_layout_of(config, options.kv_type));
  ChosenPlan planned =
      TRY(choose_weights_plan(file, config, options.arithmetic, WeightsScope::Model));
  planned.plan.parts.front().name = kWeightsPart;
  return std::unique_ptr<DraftModel>(
      new DraftModel(std::move(file), config_of(options, config, model), std::move(planned.plan)));
}

Result<BackendLimits> DraftModel::backend_limits(const BackendLimits& engine,
                                                 const Attachment& lent) const {
  if (lent.device == "cpu") return DraftProposer::backend_limits(engine, config_);
  return fail(Errc::DeviceUnsupported,
              fmt::format("--draft-model needs a broker with --device cpu, and this one lends "
                          "memory of {}; omit --draft-model",
                          lent.device));
}

std::shared_ptr<Proposer> DraftModel::make_proposer(Backend& backend, ThreadGate& engine_gate,
                                                    RevocationObserver& observer) {
  const auto on_lost = [](LeaseId lease) {
    spdlog::warn("drafting is off until this worker starts again lease={}", to_string(lease));
  };
  proposer_ = std::make_shared<DraftProposer>(
      config_, DraftProposer::Dependencies{.backend = &backend,
                                           .engine_gate = &engine_gate,
                                           .observer = &observer,
                                           .on_lost = on_lost});
  return proposer_;
}

Result<void> DraftModel::load(WeightsSource::Dependencies dependencies) {
  // The memory is acquired last, so that no call about its lease has to wait while the weights are
  // read.
  Weights weights = TRY(WeightsSource(file_, config_.model, plan_, dependencies).acquire());
  file_.release_cache();
  proposer_->bind(std::move(weights), TRY(take_memory(dependencies)));
  spdlog::info("draft model bound model=\"{}\" size_bytes={} text_size_bytes={} context={}",
               config_.model.name, plan_.size_bytes(), config_.memory_bytes(),
               config_.model.n_context);
  return {};
}

Result<DraftMemory> DraftModel::take_memory(const WeightsSource::Dependencies& from) const {
  auto reply = open_weights(*from.broker, {.model = config_.model.name,
                                           .part = kMemoryPart,
                                           .file = file_.identity(),
                                           .layout_digest = unique_layout(),
                                           .size_bytes = config_.memory_bytes()});
  if (!reply) {
    return fail(reply.error().code,
                fmt::format("{} MiB for the draft model's texts, {} sequences of {} tokens: {}; a "
                            "lower --max-batch-size or --draft-context takes less",
                            config_.memory_bytes() >> 20, config_.max_batch_size,
                            config_.model.n_context, reply.error().detail));
  }
  const wire::WeightsOpened opened = TRY(wire::WeightsOpened::from_json(reply->body));
  if (opened.published || reply->fds.size() != 1) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the broker answered weights.open for {} with memory that is in use",
                            kMemoryPart));
  }
  const LeaseDependency lease = TRY(from.table->dependency(opened.lease));
  LeasedMapping mapping = TRY(
      from.regions->map(std::move(reply->fds[0]), config_.memory_bytes(), MapAccess::ReadWrite));
  return DraftMemory{.mapping = std::move(mapping), .lease = lease};
}

}  // namespace leasehold
