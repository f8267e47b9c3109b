/// The names under which each tenant reaches the model: those of the model, and of the adapters
/// that the tenant may use.
///
/// The broker decides which these are. It is asked once for a tenant, and its answer is kept until
/// `forget`.
///
/// Lifetime: `io` and `base` outlive it. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "worker/http/api/api_request.hpp"

namespace leasehold::http {

class AdapterModels {
 public:
  using Model = std::shared_ptr<const ApiModel>;
  using Adapters = std::vector<wire::VisibleAdapter>;
  using OnListed = std::move_only_function<void(Result<Adapters>)>;
  /// Asks the broker for the tenant's adapters and the shared ones, in the order of their names.
  /// Calls back on any thread.
  using List = std::function<void(const TenantId&, OnListed)>;
  /// Beyond this number of tenants all answers are forgotten.
  static constexpr std::size_t kMaxTenants = 4096;

  /// `list` may be null: no adapters.
  AdapterModels(boost::asio::io_context& io, const ApiModel& base, List list)
      : io_(&io), base_(&base), list_(std::move(list)) {}

  /// The model as the tenant sees it. If the broker does not answer, it has only the names of the
  /// model, and ApiModel::adapters_unknown.
  boost::asio::awaitable<Model> of(TenantId tenant);
  /// Called when an adapter was added or removed, and when the broker was disconnected.
  void forget();

 private:
  /// A tenant, and the calls of `forget` before it was asked for: an answer from before such a call
  /// is not that of a request from after it.
  using Question = std::pair<TenantId, std::uint64_t>;

  /// The base outlives every request, so the pointer owns nothing.
  Model base() const { return {Model(), base_}; }
  Model with(Result<Adapters> adapters) const;
  boost::asio::awaitable<Model> ask(Question question);
  boost::asio::awaitable<Model> wait_for(Question question);

  boost::asio::io_context* io_;
  const ApiModel* base_;
  List list_;
  std::map<TenantId, Model> known_;
  std::map<Question, std::vector<std::function<void(Model)>>> asked_;  // requests that wait, too
  std::uint64_t forgotten_ = 0;                                        // calls of `forget`
};

}  // namespace leasehold::http
