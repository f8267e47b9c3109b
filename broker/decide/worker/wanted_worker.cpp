#include "broker/decide/worker/wanted_worker.hpp"

#include <fmt/format.h>

namespace leasehold {
namespace {

const TextIdentity* identity_of(const Worker& worker) {
  return worker.text_identity ? &*worker.text_identity : nullptr;
}

bool serves_model(const Worker& worker, const WantedWorker& wanted) {
  return !wanted.model || wanted.model->matches(worker.model, identity_of(worker));
}

bool continues_text(const Worker& worker, const WantedWorker& wanted) {
  return !wanted.text_identity || worker.text_identity == wanted.text_identity;
}

}  // namespace

bool serves(const Worker& worker, const WantedWorker& wanted) {
  const bool has_context = worker.max_context == 0 || worker.max_context >= wanted.min_context;
  return serves_model(worker, wanted) && continues_text(worker, wanted) && has_context;
}

std::string why_not(const Worker& worker, const WantedWorker& wanted) {
  if (!serves_model(worker, wanted))
    return fmt::format("worker {} serves {}", worker.name, model_label(worker));
  if (continues_text(worker, wanted)) {
    return fmt::format("worker {} holds {} tokens, and the text needs {}", worker.name,
                       worker.max_context, wanted.min_context);
  }
  if (!worker.text_identity) {
    return fmt::format("worker {} does not say what its tokens depend on; upgrade it", worker.name);
  }
  const bool is_same_content = worker.text_identity->content == wanted.text_identity->content;
  return fmt::format("on worker {} {}{}", worker.name,
                     difference(*wanted.text_identity, *worker.text_identity),
                     is_same_content ? ", where --any-arithmetic continues" : "");
}

std::string describe(const WantedWorker& wanted) {
  std::string what = "any model";
  if (wanted.model) what = "model " + wanted.model->text;
  if (wanted.text_identity) what = "a text that began on " + to_string(*wanted.text_identity);
  if (wanted.min_context == 0) return what;
  return fmt::format("{} with {} tokens of context", what, wanted.min_context);
}

std::string content_key(const Worker& worker) {
  return worker.text_identity ? content_name(*worker.text_identity) : worker.model;
}

std::string model_label(const Worker& worker) {
  if (!worker.text_identity) return worker.model;
  return fmt::format("{} ({})", worker.model, short_content_name(*worker.text_identity));
}

std::optional<ModelName> content_of_lease(State& state, LeaseId lease) {
  const auto found = state.leases.find(lease);
  const Worker* worker = found ? state.workers.find((*found)->worker()) : nullptr;
  if (worker == nullptr || content_key(*worker).empty()) return std::nullopt;
  return ModelName{content_key(*worker)};
}

}  // namespace leasehold
