#include "worker/http/adapter_models.hpp"

#include "ipc/http/async_value.hpp"

namespace leasehold::http {

using boost::asio::awaitable;

awaitable<AdapterModels::Model> AdapterModels::of(TenantId tenant) {
  if (!list_) co_return base();
  if (const auto known = known_.find(tenant); known != known_.end()) co_return known->second;
  Question question{std::move(tenant), forgotten_};
  if (asked_.contains(question)) co_return co_await wait_for(std::move(question));
  co_return co_await ask(std::move(question));
}

awaitable<AdapterModels::Model> AdapterModels::ask(Question question) {
  asked_.try_emplace(question);
  AsyncValue<Result<Adapters>> listed(*io_);
  list_(question.first, listed.giver());
  auto adapters = co_await listed.take();
  const auto waiting = asked_.extract(question);
  if (!adapters) co_return base();  // the server is stopping
  const bool is_kept = adapters->has_value() && question.second == forgotten_;
  Model model = with(std::move(*adapters));
  for (const auto& give : waiting.mapped()) give(model);
  if (is_kept && known_.size() >= kMaxTenants) known_.clear();
  if (is_kept) known_.insert_or_assign(std::move(question.first), model);
  co_return model;
}

/// Waits for the answer that another request has asked for.
awaitable<AdapterModels::Model> AdapterModels::wait_for(Question question) {
  AsyncValue<Model> answered(*io_);
  asked_.at(question).emplace_back(answered.giver());
  auto model = co_await answered.take();
  co_return model ? *std::move(model) : base();  // without a model the server is stopping
}

void AdapterModels::forget() {
  ++forgotten_;
  known_.clear();
}

/// Copies the model only if the tenant's view of it differs.
AdapterModels::Model AdapterModels::with(Result<Adapters> adapters) const {
  if (adapters && adapters->empty()) return base();
  auto model = std::make_shared<ApiModel>(*base_);
  if (!adapters) model->adapters_unknown = adapters.error();
  if (adapters) model->adapters = *std::move(adapters);
  return model;
}

}  // namespace leasehold::http
