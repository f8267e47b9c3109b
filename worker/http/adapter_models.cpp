#include "worker/http/adapter_models.hpp"

#include <utility>

#include "ipc/http/async_value.hpp"

namespace leasehold::http {

boost::asio::awaitable<std::shared_ptr<const ApiModel>> AdapterModels::of(TenantId tenant) {
  if (!list_) co_return base();
  if (const auto known = known_.find(tenant); known != known_.end()) co_return known->second;
  const std::uint64_t asked_at = forgotten_;
  AsyncValue<Result<Adapters>> listed(*io_);
  list_(tenant, listed.giver());
  auto adapters = co_await listed.take();
  if (!adapters) co_return base();  // the server is stopping
  const bool is_kept = adapters->has_value() && asked_at == forgotten_;
  std::shared_ptr<const ApiModel> model = with(std::move(*adapters));
  if (is_kept && known_.size() >= kMaxTenants) known_.clear();
  if (is_kept) known_.insert_or_assign(std::move(tenant), model);
  co_return model;
}

void AdapterModels::forget() {
  ++forgotten_;
  known_.clear();
}

/// Copies the model only if the tenant's view of it differs.
std::shared_ptr<const ApiModel> AdapterModels::with(Result<Adapters> adapters) const {
  if (adapters && adapters->empty()) return base();
  auto model = std::make_shared<ApiModel>(*base_);
  if (!adapters) model->adapters_unknown = adapters.error();
  if (adapters) model->adapters = *std::move(adapters);
  return model;
}

}  // namespace leasehold::http
