#include "worker/http/adapter_models.hpp"

#include <utility>

#include "ipc/http/async_value.hpp"

namespace leasehold::http {

boost::asio::awaitable<std::shared_ptr<const ApiModel>> AdapterModels::of(TenantId tenant) {
  if (!list_) co_return base();
  if (const auto known = known_.find(tenant); known != known_.end()) co_return known->second;
  const std::uint64_t asked_at = forgotten_;
  AsyncValue<Result<std::vector<std::string>>> listed(*io_);
  list_(tenant, listed.giver());
  auto names = co_await listed.take();
  if (!names) co_return base();  // the server is stopping
  const bool is_kept = names->has_value() && asked_at == forgotten_;
  std::shared_ptr<const ApiModel> model = with(std::move(*names));
  if (is_kept && known_.size() >= kMaxTenants) known_.clear();
  if (is_kept) known_.insert_or_assign(std::move(tenant), model);
  co_return model;
}

void AdapterModels::forget() {
  ++forgotten_;
  known_.clear();
}

/// Copies the model only if the tenant's view of it differs.
std::shared_ptr<const ApiModel> AdapterModels::with(Result<std::vector<std::string>> names) const {
  if (names && names->empty()) return base();
  auto model = std::make_shared<ApiModel>(*base_);
  if (!names) model->adapters_unknown = names.error();
  if (names) model->adapters = *std::move(names);
  return model;
}

}  // namespace leasehold::http
